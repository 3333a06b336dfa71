"""Parameters of the attacks that ask for scores or labels."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

Temporal: TypeAlias = Literal["fold", "tube", "mixed", "window"]
"""How the squares of the Square Attack extend over time."""


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
