"""What `vcr` learns about this distribution; imported on every command, so data only."""
