"""A static site from run folders, and the checks that a submitted run folder has to pass."""
