"""What the models say about themselves, by family; data only."""
