"""What `vcr` learns about this distribution; imported on every command, so data only."""

from __future__ import annotations

from vcr_core import AttackSpec, DatasetSpec, PresetSource, hookimpl

from vcr_attacks.specs import (
    corruptions,
    gradient,
    natural,
    overlays,
    perceptual,
    prepared,
    query,
    tamper_dataset,
    tampering,
    transfer,
    video_corruptions,
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
    video_corruptions,
)


@hookimpl
def vcr_register_attacks() -> list[AttackSpec]:
    """Describe the attacks of this distribution."""
    return [spec for family in _FAMILIES for spec in family.SPECS]


@hookimpl
def vcr_register_datasets() -> list[DatasetSpec]:
    """Describe the datasets of this distribution: what its operators make of other ones."""
    return [*tamper_dataset.SPECS]


@hookimpl
def vcr_register_presets() -> list[PresetSource]:
    """Name the folder of the parameter sets that this distribution ships."""
    return [PresetSource(package="vcr_attacks")]
