"""Adapters: one module a library, each with ``network`` and ``load``; see ``zoo/build.py``."""
