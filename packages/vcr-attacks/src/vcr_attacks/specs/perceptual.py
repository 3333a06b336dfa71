"""Attacks with a perceptual constraint instead of a norm."""

from __future__ import annotations

from vcr_core import AttackSpec

SPECS: tuple[AttackSpec, ...] = ()
