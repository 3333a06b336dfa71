"""Attacks with an offline step, or that work through a surrogate model."""

from __future__ import annotations

from vcr_core import AttackSpec

SPECS: tuple[AttackSpec, ...] = ()
