"""Models that users bring as files."""
