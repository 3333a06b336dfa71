"""Parameters of the defenses that mix or move frames."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from vcr_defenses.params.common import MergeRule, Votes

PerOrder: TypeAlias = Annotated[
    Literal["video", "clip"], Meta(description="how often the choice of frames is drawn")
]


class TemporalShuffleParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``temporal-shuffle``; ``reach`` and ``chunk`` count in mode ``chunks``."""

    mode: Annotated[
        Literal["chunks", "permute-local", "full"],
        Meta(
            description="chunks: runs of frames from nearby, with repeats and omissions; "
            "permute-local: a permutation inside windows; full: a permutation"
        ),
    ] = "chunks"
    reach: Annotated[int, Meta(ge=1, description="how far off a run may start, in frames")] = 2
    chunk: Annotated[int, Meta(ge=1, description="frames of a run")] = 4
    window: Annotated[int, Meta(ge=1, description="frames of a window, permute-local")] = 4
    votes: Votes = 1
    merge: MergeRule = "mean-prob"
    per: PerOrder = "video"


class TemporalMedianParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``temporal-median``."""

    window: Annotated[int, Meta(ge=1, le=31, description="frames of a window, odd")] = 3

    def __post_init__(self) -> None:
        """Refuse an even window."""
        if self.window % 2 == 0:
            raise ValueError(
                f"window must be odd, got {self.window}: a window without a centre has two medians"
            )


class BilateralParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``bilateral``."""

    sigma_color: Annotated[
        float, Meta(gt=0, description="difference of values that still counts as alike, '15/255'")
    ] = 15 / 255
    sigma_time: Annotated[float, Meta(gt=0, description="in frames")] = 1.0
    radius: Annotated[int, Meta(ge=0, le=64, description="frames on either side")] = 2


class DomainTransformParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``domain-transform``."""

    sigma_time: Annotated[float, Meta(gt=0, description="reach of the smoothing in frames")] = 2.0
    sigma_range: Annotated[
        float, Meta(gt=0, description="change, summed over channels, that counts as an edge")
    ] = 0.1
    iterations: Annotated[int, Meta(ge=1, le=10, description="passes there and back")] = 3


class TemporalSubsampleParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``temporal-subsample``; ``stride`` or ``keep`` counts, by ``mode``."""

    mode: Annotated[
        Literal["stride", "random"],
        Meta(description="stride: every stride-th frame stays; random: a frame stays with keep"),
    ] = "stride"
    stride: Annotated[int, Meta(ge=1, description="1 changes nothing")] = 2
    keep: Annotated[float, Meta(ge=0, le=1, description="probability that a frame stays")] = 0.5
    fill: Annotated[
        Literal["linear", "repeat"],
        Meta(description="linear: between the frames that stay; repeat: the one before"),
    ] = "linear"
    votes: Votes = 1
    merge: MergeRule = "mean-prob"
    per: PerOrder = "video"
