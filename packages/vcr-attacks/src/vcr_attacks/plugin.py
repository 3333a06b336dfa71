"""What `vcr` learns about this distribution; imported on every command, so data only."""

from __future__ import annotations

from vcr_core import AttackSpec, PresetSource, hookimpl

from vcr_attacks.specs import (
    corruptions,
    gradient,
    natural,
    overlays,
    perceptual,
    prepared,
    query,
    tampering,
    transfer,
)

_FAMILIES = (
    corruptions,
    gradient,
    natural,
    overlays,
    perceptual,
    prepared,
    query,
    tampering,
    transfer,
)


@hookimpl
def vcr_register_attacks() -> list[AttackSpec]:
    """Describe the attacks of this distribution."""
    return [spec for family in _FAMILIES for spec in family.SPECS]


@hookimpl
def vcr_register_presets() -> list[PresetSource]:
    """Name the folder of the parameter sets that this distribution ships."""
    return [PresetSource(package="vcr_attacks")]
