"""What `vcr` learns about this distribution; imported on every command, so data only."""

from __future__ import annotations

from vcr_core import DefenseSpec, PresetSource, hookimpl

from vcr_defenses.specs import diffusion, learned, smoothing, spatial, temporal


@hookimpl
def vcr_register_defenses() -> list[DefenseSpec]:
    """Describe the defenses of this distribution."""
    return [*diffusion.SPECS, *learned.SPECS, *smoothing.SPECS, *spatial.SPECS, *temporal.SPECS]


@hookimpl
def vcr_register_presets() -> list[PresetSource]:
    """Name the folder of the parameter sets that this distribution ships."""
    return [PresetSource(package="vcr_defenses")]
