"""Parameters of the attacks by family; importing them needs msgspec only."""
