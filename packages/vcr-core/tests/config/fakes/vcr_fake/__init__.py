"""Stands for an installed plugin: parameter structs and presets, no code."""
