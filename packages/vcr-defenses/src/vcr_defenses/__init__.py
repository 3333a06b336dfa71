"""Defenses of video classifiers, as plugins for vcr."""

from vcr_defenses.__about__ import __version__

__all__ = ["__version__"]
