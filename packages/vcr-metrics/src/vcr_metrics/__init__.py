"""Distances between clean and perturbed videos, as plugins for vcr."""

from vcr_metrics.__about__ import __version__

__all__ = ["__version__"]
