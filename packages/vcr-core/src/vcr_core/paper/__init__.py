"""The published tables of VCR-Bench, and our runs in their layout."""
