"""What the attacks say about themselves, by family; data only."""
