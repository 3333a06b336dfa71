"""Parameters of the defenses that change every frame by itself."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from vcr_defenses.params.common import MergeRule, Per, Votes


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


class CropResizeParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``crop-resize``. ``crop_frac`` takes the place of ``crop_px``."""

    crop_px: Annotated[
        tuple[Annotated[int, Meta(ge=0)], Annotated[int, Meta(ge=0)]],
        Meta(
            description="least and most pixels cut from height and from width together, "
            "never more than a quarter of the shorter side"
        ),
    ] = (2, 20)
    crop_frac: (
        Annotated[float, Meta(gt=0, le=1, description="side of the window as a part of the frame")]
        | None
    ) = None
    votes: Votes = 1
    merge: MergeRule = "mean-prob"
    per: Annotated[Per, Meta(description="how often the window is drawn")] = "video"

    def __post_init__(self) -> None:
        """Refuse an empty range."""
        if self.crop_px[0] > self.crop_px[1]:
            raise ValueError(f"crop_px must be [least, most], got {list(self.crop_px)}")


class RandomResizePadParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``random-resize-pad``, for a frame of ``base`` pixels; others in proportion."""

    smallest: Annotated[int, Meta(ge=1, description="least size after resizing")] = 310
    padded: Annotated[int, Meta(ge=2, description="size after padding, above every resize")] = 331
    base: Annotated[int, Meta(ge=1, description="frame size that the two sizes are for")] = 299
    interpolation: Annotated[
        Literal["bilinear", "nearest"], Meta(description="how the first resize samples")
    ] = "bilinear"
    back: Annotated[
        bool,
        Meta(description="resize to the frame's size again; false: the model gets more pixels"),
    ] = True
    flip: Annotated[float, Meta(ge=0, le=1, description="probability of a horizontal flip")] = 0.0
    votes: Votes = 1
    merge: MergeRule = "mean-prob"
    per: Annotated[Per, Meta(description="how often size, place and flip are drawn")] = "video"

    def __post_init__(self) -> None:
        """Refuse sizes that leave no room for padding."""
        if self.smallest >= self.padded:
            raise ValueError(
                f"smallest must be below padded, got {self.smallest} and {self.padded}"
            )


class FlipParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``flip``."""

    probability: Annotated[float, Meta(ge=0, le=1, description="how likely a flip is")] = 1.0
    ensemble: Annotated[
        bool, Meta(description="mean of the predictions for the video and for its mirror image")
    ] = False
    per: Annotated[Per, Meta(description="how often a flip is drawn")] = "video"

    def __post_init__(self) -> None:
        """Refuse an ensemble of two equal members."""
        if self.ensemble and self.probability != 1:
            raise ValueError("ensemble = true asks both ways, so probability must stay 1")


class BitDepthParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``bit-depth``."""

    bits: Annotated[int, Meta(ge=1, le=16, description="bits that a channel keeps")] = 4


class MedianParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``median``."""

    size: Annotated[int, Meta(ge=1, le=9, description="side of the window, odd")] = 3

    def __post_init__(self) -> None:
        """Refuse an even window."""
        if self.size % 2 == 0:
            raise ValueError(
                f"size must be odd, got {self.size}: a window without a centre has two medians"
            )


class TvmParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``tvm``."""

    weight: Annotated[float, Meta(ge=0, description="weight of the total variation")] = 0.03
    drop: Annotated[
        float, Meta(ge=0, le=0.95, description="probability that a value is left out")
    ] = 0.5
    iterations: Annotated[int, Meta(ge=1, le=10000, description="primal-dual steps")] = 40
    temporal_weight: Annotated[
        float, Meta(ge=0, description="weight of the differences between frames; 0 = frames apart")
    ] = 0.0
    surrogate: Annotated[
        Literal["identity", "unrolled"],
        Meta(description="stand-in for the gradient: nothing, or that of all the steps"),
    ] = "identity"
    per: Annotated[Per, Meta(description="how often the mask is drawn")] = "video"


class VideoCodecParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``video-codec``."""

    codec: Annotated[Literal["h264", "vp9", "mpeg4", "mjpeg"], Meta(description="the format")] = (
        "h264"
    )
    crf: Annotated[
        int,
        Meta(ge=0, le=63, description="rate factor of h264 (to 51) and vp9; lower is better"),
    ] = 30
    qscale: Annotated[
        int, Meta(ge=1, le=31, description="quantiser of mpeg4 and mjpeg; lower is better")
    ] = 8
    preset: Annotated[
        Literal["ultrafast", "veryfast", "medium", "slow"],
        Meta(description="effort of h264"),
    ] = "veryfast"
    pix_fmt: Annotated[
        Literal["yuv420p", "yuv444p"], Meta(description="resolution of the chroma planes")
    ] = "yuv420p"
    fps: Annotated[int, Meta(ge=1, le=240, description="frame rate told to the encoder")] = 25

    def __post_init__(self) -> None:
        """Refuse what a codec cannot do."""
        if self.codec == "h264" and self.crf > 51:
            raise ValueError(f"crf of h264 ends at 51, got {self.crf}")
        if self.codec == "mpeg4" and self.pix_fmt != "yuv420p":
            raise ValueError("mpeg4 takes pix_fmt = 'yuv420p' only")
