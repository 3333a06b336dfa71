"""Purification with diffusion models: schedule, denoisers and the defenses built on them."""
