"""Parameters of natural transformations."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


class NaturalShiftParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``natural-shift``."""

    steps: Annotated[int, Meta(description="how far; negative is earlier, 0 is the same clip")] = 1
    rate: Annotated[int, Meta(ge=1, description="steps a second")] = 15
    unit: Annotated[
        Literal["time", "frame"], Meta(description="whether a step is 1/rate s or one frame")
    ] = "time"
    boundary: Annotated[
        Literal["skip", "clamp", "center-crop"],
        Meta(
            description="what happens at the ends: the video is left out; the last frame is "
            "repeated; or both ends are kept free for reach steps, which moves the anchor, too"
        ),
    ] = "skip"
    reach: Annotated[int, Meta(ge=0, description="steps that center-crop keeps free")] = 5
