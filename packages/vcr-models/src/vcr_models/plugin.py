"""What `vcr` learns about this distribution; imported on every command, so data only."""

from __future__ import annotations

from vcr_core import ModelSpec, hookimpl

from vcr_models.specs import files, frames, tamper, tiny, vlm
from vcr_models.zoo.catalog import specs as zoo


@hookimpl
def vcr_register_models() -> list[ModelSpec]:
    """Describe the classifiers of this distribution."""
    return [
        *files.SPECS,
        *frames.SPECS,
        *tamper.SPECS,
        *tiny.SPECS,
        *vlm.SPECS,
        *zoo(),
    ]
