"""Ways to run the shards of a run."""
