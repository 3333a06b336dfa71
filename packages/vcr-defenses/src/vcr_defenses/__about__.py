"""Version of the distribution, and nothing else."""

__version__ = "1.0.0a1"
