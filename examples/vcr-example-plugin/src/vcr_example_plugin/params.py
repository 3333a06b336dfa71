"""Parameters of the components; msgspec only, so that a run file can be checked without torch."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class NoiseParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of `example-noise`."""

    strength: Annotated[
        float, Meta(ge=0, le=1, description="share of the threat's radius that is used")
    ] = 1.0


class AverageParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of `example-average`."""

    reach: Annotated[
        int, Meta(ge=0, le=16, description="frames on each side that are averaged with a frame")
    ] = 1


class LinearParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of `example-linear`."""

    gain: Annotated[float, Meta(gt=0, description="factor on the logits")] = 100.0


class GradientsParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of `example-gradients`."""

    per_class: Annotated[int, Meta(ge=1, le=1000, description="videos of each class")] = 8
    size: Annotated[int, Meta(ge=8, le=512, description="side of the frames in pixels")] = 32
