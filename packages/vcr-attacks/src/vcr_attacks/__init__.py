"""Adversarial attacks on video classifiers, as plugins for vcr."""

from vcr_attacks.__about__ import __version__

__all__ = ["__version__"]
