"""Fields that several attacks take."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

Steps: TypeAlias = Annotated[int, Meta(ge=1, description="gradient steps")]
GradientLoss: TypeAlias = Annotated[
    Literal["ce", "margin", "dlr"],
    Meta(description="what is minimised, on the log of the aggregated probabilities"),
]
Keep: TypeAlias = Annotated[
    Literal["best", "last"],
    Meta(
        description="what a video that was not stopped returns: its best point "
        "(first success, else lowest loss) or the last one, as papers do"
    ),
]
Epochs: TypeAlias = Annotated[
    int, Meta(ge=1, description="passes over the training videos, at most")
]
Holdout: TypeAlias = Annotated[
    float,
    Meta(
        ge=0,
        lt=1,
        description="share of the training videos that only choose the best pass; rounded down",
    ),
]
StopRate: TypeAlias = (
    Annotated[float, Meta(gt=0, le=1, description="fooling rate at which training ends")] | None
)
