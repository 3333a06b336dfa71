"""Parameters of the defenses that are learned from videos."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

Threshold: TypeAlias = Annotated[
    float | None,
    Meta(description="scores above it are rejected; absent = found by vcr prepare"),
]
Fpr: TypeAlias = Annotated[
    float, Meta(gt=0, lt=1, description="share of clean training videos that may be rejected")
]


class AdvTrainedParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``adv-trained``."""

    variant: Annotated[
        str, Meta(description="variant of the run's model that was trained adversarially")
    ] = "adv"
    model: Annotated[
        str, Meta(description="reference of the hardened model, where it is not such a variant")
    ] = ""


class FeatureSqueezingParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``feature-squeezing``. A squeezer whose size is 0 is left out."""

    bits: Annotated[int, Meta(ge=0, le=16, description="bits that a channel keeps")] = 5
    median: Annotated[int, Meta(ge=0, le=9, description="side of the median's window, odd")] = 3
    means_window: Annotated[
        int, Meta(ge=0, le=31, description="side of the search window of non-local means, odd")
    ] = 11
    means_patch: Annotated[int, Meta(ge=1, le=15, description="side of its patches, odd")] = 3
    means_strength: Annotated[
        float, Meta(gt=0, description="its filter parameter in 8-bit levels")
    ] = 4.0
    threshold: Threshold = None
    fpr: Fpr = 0.05

    def __post_init__(self) -> None:
        """Refuse even windows and a detector without a squeezer."""
        for name in ("median", "means_window", "means_patch"):
            value = getattr(self, name)
            if value and value % 2 == 0:
                raise ValueError(f"{name} must be odd, got {value}")
        if not (self.bits or self.median or self.means_window):
            raise ValueError("bits, median and means_window are all 0: no squeezer is left")


class AdvItParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``advit``."""

    frames: Annotated[int, Meta(ge=1, description="how many frames back pseudo frames reach")] = 3
    flow: Annotated[
        Literal["raft-large", "raft-small", "ilk", "dis", "farneback", "zero"],
        Meta(description="estimator of the optical flow; zero: nothing moves"),
    ] = "ilk"
    flow_weights: Annotated[
        str, Meta(description="file of RAFT's weights; empty = torch's hub cache")
    ] = ""
    flow_noise: Annotated[
        float, Meta(ge=0, description="standard deviation of the noise on the flow, in pixels")
    ] = 1.0
    draws: Annotated[int, Meta(ge=1, description="noise draws for each distance")] = 1
    threshold: Threshold = None
    fpr: Fpr = 0.05


class DefensePatternsParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``defense-patterns``."""

    eps: Annotated[float, Meta(gt=0, le=1, description="largest value of the pattern")] = 8 / 255
    epochs: Annotated[int, Meta(ge=1, description="passes over the training videos")] = 20
    batch: Annotated[int, Meta(ge=1, description="training videos of one step")] = 16
    rate: Annotated[float, Meta(gt=0, description="Adam's step size as a part of eps")] = 0.01
    weight: Annotated[float, Meta(ge=0, description="weight of the attacked videos' loss")] = 1.0
    attack_steps: Annotated[
        int, Meta(ge=1, description="sign steps that make the attacked videos")
    ] = 5
