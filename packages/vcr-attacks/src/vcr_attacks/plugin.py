"""What `vcr` learns about this distribution; imported on every command, so data only."""

from __future__ import annotations

from vcr_core import AttackSpec, PresetSource, hookimpl

from vcr_attacks.specs import gradient, perceptual, prepared, query


@hookimpl
def vcr_register_attacks() -> list[AttackSpec]:
    """Describe the attacks of this distribution."""
    return [*gradient.SPECS, *perceptual.SPECS, *prepared.SPECS, *query.SPECS]


@hookimpl
def vcr_register_presets() -> list[PresetSource]:
    """Name the folder of the parameter sets that this distribution ships."""
    return [PresetSource(package="vcr_attacks")]
