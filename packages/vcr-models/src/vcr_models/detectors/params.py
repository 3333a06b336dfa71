"""Parameters of the detectors of tampering; msgspec only."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


class BaselineParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``tamper-baseline``."""

    effects: Annotated[
        Literal["mvt5", "mvt8"], Meta(description="the effects that it reckons with")
    ] = "mvt5"
    calibration: Annotated[
        Annotated[str, Meta(extra={"path": True}, min_length=1)] | None,
        Meta(description="file with fitted thresholds or weights, in the place of the variant's"),
    ] = None
    unknown_fps: Annotated[
        float, Meta(gt=0, description="frames per second of videos that do not state them")
    ] = 25.0


class NetParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``tamper-net``."""

    effects: Annotated[
        Literal["mvt5", "mvt8", "all"], Meta(description="the effects that it reckons with")
    ] = "mvt5"
    unknown_fps: Annotated[
        float, Meta(gt=0, description="frames per second of videos that do not state them")
    ] = 25.0
