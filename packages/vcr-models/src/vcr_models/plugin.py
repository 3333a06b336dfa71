"""What `vcr` learns about this distribution; imported on every command, so data only."""

from __future__ import annotations

from vcr_core import ModelSpec, hookimpl

from vcr_models.specs import tiny


@hookimpl
def vcr_register_models() -> list[ModelSpec]:
    """Describe the classifiers of this distribution."""
    return [*tiny.SPECS]
