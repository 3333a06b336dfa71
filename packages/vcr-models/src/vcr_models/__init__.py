"""Video classifiers as plugins for vcr."""

from vcr_models.__about__ import __version__

__all__ = ["__version__"]
