"""Parameters of the defenses; importing this module needs msgspec only."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

Per: TypeAlias = Literal["video", "clip", "frame"]
"""How often a random parameter is drawn."""


class GaussianBlurParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``gaussian-blur``. ``sigma`` and ``kernel_size`` count in mode ``fixed``."""

    mode: Annotated[
        Literal["fixed", "vcr"],
        Meta(
            description="fixed: this sigma and kernel; "
            "vcr: sigma U(5, 25) and a kernel of 3 to 11 taps, drawn at random, nearly a box"
        ),
    ] = "fixed"
    sigma: Annotated[float, Meta(ge=0, description="in pixels; 0 changes nothing")] = 1.0
    kernel_size: Annotated[int, Meta(ge=1, le=255, description="taps along one axis, odd")] = 5
    per: Annotated[Per, Meta(description="how often mode vcr draws")] = "video"

    def __post_init__(self) -> None:
        """Refuse an even kernel."""
        if self.kernel_size % 2 == 0:
            raise ValueError(f"kernel_size must be odd, got {self.kernel_size}")


class JpegParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``jpeg``."""

    quality: Annotated[int, Meta(ge=1, le=100)] = 75
    subsampling: Annotated[
        Literal["4:2:0", "4:4:4"], Meta(description="resolution of the chroma planes")
    ] = "4:2:0"
    backend: Annotated[
        Literal["pil", "torch"],
        Meta(description="pil: libjpeg on the CPU; torch: the same steps on the clips' device"),
    ] = "pil"
    surrogate: Annotated[
        Literal["cubic", "straight-through", "identity"],
        Meta(
            description="stand-in for the gradient: JPEG with a soft rounding, "
            "JPEG with the gradient of rounding taken as 1, or nothing at all"
        ),
    ] = "cubic"


class RotateParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``rotate``."""

    max_degrees: Annotated[
        float, Meta(ge=0, le=180, description="the angle is uniform in ± this many degrees")
    ] = 30.0
    pad: Annotated[Literal["zeros", "reflect"], Meta(description="what fills the corners")] = (
        "zeros"
    )
    per: Annotated[Per, Meta(description="how often the angle is drawn")] = "video"
