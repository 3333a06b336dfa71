"""Parameters of the universal flicker, border and patch."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from vcr_attacks.params.common import Epochs, GradientLoss, Holdout, StopRate
from vcr_attacks.params.perceptual import Bound, FlickerLoss, Roughness, ShapeWeight, Thickness

Scope: TypeAlias = Annotated[
    Literal["clip", "frame"], Meta(description="the same in all frames, or one per frame")
]


class UniversalParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What all of them take. Training videos are ``[prepare]``'s."""

    epochs: Epochs = 60
    batch: Annotated[int, Meta(ge=1, description="videos of a mini-batch")] = 8
    holdout: Holdout = 0.2
    stop_rate: StopRate = None


class FlickeringUniversalParams(
    UniversalParams, forbid_unknown_fields=True, frozen=True, kw_only=True
):
    """Parameters of ``flickering-universal``."""

    lr: Annotated[float, Meta(gt=0, le=1, description="Adam's step in the pixel range")] = 0.01
    bound: Bound = 0.2
    weight: ShapeWeight = 1.0
    thickness: Thickness = 0.5
    roughness: Roughness = 0.5
    roll: Annotated[
        bool, Meta(description="train with the offsets rolled in time by random numbers of frames")
    ] = True
    loss: FlickerLoss = "flicker"


class FramingUniversalParams(
    UniversalParams, forbid_unknown_fields=True, frozen=True, kw_only=True
):
    """Parameters of ``framing-universal``."""

    lr: Annotated[
        float, Meta(gt=0, description="Adam's step on a, where a border pixel is sigmoid(a)")
    ] = 0.1
    width: Annotated[int, Meta(ge=1, description="width of the border in pixels")] = 4
    scope: Scope = "clip"
    loss: GradientLoss = "ce"


class PatchUniversalParams(UniversalParams, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``patch-universal``."""

    lr: Annotated[
        float, Meta(gt=0, description="Adam's step on a, where a patch pixel is sigmoid(a)")
    ] = 0.1
    area: Annotated[
        float, Meta(gt=0, lt=1, description="share of a frame that the square covers")
    ] = 0.05
    place: Annotated[
        Literal["random", "center"],
        Meta(description="drawn for each video, or the middle of the frame"),
    ] = "random"
    scope: Scope = "clip"
    loss: GradientLoss = "ce"
