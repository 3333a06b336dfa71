"""Parameters of the attacks; importing this module needs msgspec only."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

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

Temporal: TypeAlias = Literal["fold", "tube", "mixed", "window"]
"""How the squares of the Square Attack extend over time."""


class IfgsmParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``ifgsm``. The radius is the threat's."""

    steps: Steps = 20
    step: (
        Annotated[
            float, Meta(gt=0, le=1, description="step size '1/255', or auto = 2.5 * eps / steps")
        ]
        | Literal["auto"]
    ) = 1 / 255
    loss: GradientLoss = "ce"
    keep: Keep = "best"


class PgdParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``pgd``. Norm and radius are the threat's."""

    steps: Steps = 20
    step: (
        Annotated[
            float,
            Meta(gt=0, description="step size in units of the norm, or auto = 2.5 * eps / steps"),
        ]
        | Literal["auto"]
    ) = "auto"
    random_start: Annotated[
        bool, Meta(description="start at a random point of the ball instead of the clean video")
    ] = True
    restarts: Annotated[
        int, Meta(ge=1, description="runs from new starts, for videos not yet broken")
    ] = 1
    loss: GradientLoss = "ce"
    keep: Keep = "best"

    def __post_init__(self) -> None:
        """Refuse restarts that would all be the same."""
        if self.restarts > 1 and not self.random_start:
            raise ValueError("restarts above 1 need random_start = true: every run would be equal")


class SquareParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``square``. Norm and radius are the threat's."""

    iterations: Annotated[
        int, Meta(ge=1, description="proposals; one query each, and one for the start")
    ] = 200
    p_init: Annotated[
        float, Meta(gt=0, le=1, description="share of a frame that the first squares cover")
    ] = 0.8
    temporal: Annotated[
        Temporal,
        Meta(
            description="fold: one square, with signs of its own in every frame; tube: the same "
            "signs in all frames; mixed: one or the other at random; "
            "window: as tube, in a random half of the frames"
        ),
    ] = "mixed"
    loss: Annotated[
        Literal["auto", "margin", "ce"],
        Meta(description="what decides; auto is margin, or ce when targeted"),
    ] = "auto"
