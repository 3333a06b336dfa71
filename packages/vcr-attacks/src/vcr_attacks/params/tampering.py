"""Parameters of the tampering operators."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


class TamperParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters that every operator has: which segment of the video is changed."""

    location: Annotated[
        Literal["start", "middle", "end", "random"] | Annotated[float, Meta(ge=0, le=1)],
        Meta(description="where the segment is; a number is its centre as a part of the video"),
    ] = "middle"
    duration_s: Annotated[float, Meta(ge=0, description="its length in seconds; 0 = nothing")] = 1.0
    duration_frames: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="its length in frames, instead of duration_s"),
    ] = None


class CutParams(TamperParams, frozen=True, kw_only=True):
    """Parameters of operators that change the length of the video."""

    keep_length: Annotated[
        bool, Meta(description="trim the result, or hold its last frame, to the old length")
    ] = False


class RepeatParams(CutParams, frozen=True, kw_only=True):
    """Parameters of ``repeat``."""

    times: Annotated[int, Meta(ge=1, description="how often the segment is shown again")] = 1


class SpeedParams(CutParams, frozen=True, kw_only=True):
    """Parameters of ``speed``."""

    factor: Annotated[
        Literal["2", "0.5"], Meta(description="2: every second frame; 0.5: every frame twice")
    ] = "2"


class MaskParams(TamperParams, frozen=True, kw_only=True):
    """Parameters of ``mask``."""

    value: Annotated[float, Meta(ge=0, le=1, description="grey level that covers the frames")] = 0.0


class LocalMaskParams(MaskParams, frozen=True, kw_only=True):
    """Parameters of ``local-mask``."""

    area: Annotated[float, Meta(ge=0, le=1, description="covered part of the frame")] = 0.16
    position: Annotated[Literal["random", "center"], Meta(description="where the rectangle is")] = (
        "random"
    )


class TurnParams(TamperParams, frozen=True, kw_only=True):
    """Parameters of ``rotate``."""

    angle: Annotated[
        Literal["90", "180", "270"],
        Meta(description="degrees anticlockwise; 90 and 270 are resized to the frame's size"),
    ] = "180"


class SubstituteParams(TamperParams, frozen=True, kw_only=True):
    """Parameters of ``substitute``."""

    donor: Annotated[
        Literal["other-class", "any"], Meta(description="which videos may give their frames")
    ] = "other-class"


class NoiseParams(TamperParams, frozen=True, kw_only=True):
    """Parameters of ``noise``."""

    sigma: Annotated[float, Meta(ge=0, description="standard deviation in 8-bit levels")] = 25.0


class SoftenParams(TamperParams, frozen=True, kw_only=True):
    """Parameters of ``blur``."""

    sigma: Annotated[float, Meta(ge=0, description="standard deviation in pixels")] = 3.0


class CompressParams(TamperParams, frozen=True, kw_only=True):
    """Parameters of ``jpeg``."""

    quality: Annotated[int, Meta(ge=1, le=100)] = 10
