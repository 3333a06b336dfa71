"""The evaluation loop: set-up, batches, shards, runs."""
