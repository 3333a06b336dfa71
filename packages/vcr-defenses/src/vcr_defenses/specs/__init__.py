"""What the defenses say about themselves, by family; data only."""
