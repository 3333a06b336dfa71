"""The toys as a plugin, for tests that name components in a run file."""

from __future__ import annotations

from vcr_core.hookspecs import hookimpl
from vcr_core.specs import (
    AttackSpec,
    ComponentSpec,
    DatasetSpec,
    DefenseSpec,
    MetricSpec,
    ModelSpec,
)
from vcr_core.testing.toys.specs import TOY_CRASH, TOYS

_ALL: tuple[ComponentSpec, ...] = (*TOYS, TOY_CRASH)


@hookimpl
def vcr_register_models() -> list[ModelSpec]:
    """Describe the toy models."""
    return [spec for spec in _ALL if isinstance(spec, ModelSpec)]


@hookimpl
def vcr_register_attacks() -> list[AttackSpec]:
    """Describe the toy attacks."""
    return [spec for spec in _ALL if isinstance(spec, AttackSpec)]


@hookimpl
def vcr_register_defenses() -> list[DefenseSpec]:
    """Describe the toy defenses."""
    return [spec for spec in _ALL if isinstance(spec, DefenseSpec)]


@hookimpl
def vcr_register_metrics() -> list[MetricSpec]:
    """Describe the toy metrics."""
    return [spec for spec in _ALL if isinstance(spec, MetricSpec)]


@hookimpl
def vcr_register_datasets() -> list[DatasetSpec]:
    """Describe the toy dataset."""
    return [spec for spec in _ALL if isinstance(spec, DatasetSpec)]
