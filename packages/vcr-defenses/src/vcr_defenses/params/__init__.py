"""Parameters of the defenses by family; importing them needs msgspec only."""
