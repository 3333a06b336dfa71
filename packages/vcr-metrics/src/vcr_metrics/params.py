"""Parameters of the metrics; importing this module needs msgspec only."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


class PsnrParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``psnr``."""

    frame_cap_db: Annotated[
        float,
        Meta(gt=0, description="what an identical frame counts as in psnr_frame_mean, in dB"),
    ] = 100.0


class LpipsParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``lpips``."""

    net: Annotated[
        Literal["alex", "vgg", "squeeze"],
        Meta(description="backbone; alex is the usual one of reports, vgg of losses"),
    ] = "alex"
    backbone: Annotated[
        str,
        Meta(description="torchvision's file of the backbone; where vcr weights looks if empty"),
    ] = ""


class DistsParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``dists``."""

    backbone: Annotated[
        str, Meta(description="torchvision's file of VGG16; where vcr weights looks if empty")
    ] = ""


class LpipsVcrbenchParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``lpips-vcrbench``."""

    backbone: Annotated[
        str, Meta(description="torchvision's file of VGG16; where vcr weights looks if empty")
    ] = ""


class StLpipsParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``st-lpips`` and ``tlp``."""

    net: Annotated[
        Literal["alex", "vgg"], Meta(description="backbone; vgg costs about three times as much")
    ] = "alex"


class WarpingErrorParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``warping-error``."""

    flow: Annotated[
        Literal["tvl1", "dis"],
        Meta(description="optical flow: tvl1 of scikit-image, or dis of OpenCV, far faster"),
    ] = "tvl1"


class VmafParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``vmaf``."""

    model: Annotated[
        Literal["vmaf_v0.6.1", "vmaf_v0.6.1neg"],
        Meta(description="neg gives no credit for enhancement, so it is the stricter one"),
    ] = "vmaf_v0.6.1"
    ffmpeg: Annotated[
        str, Meta(description="an ffmpeg with libvmaf; that of imageio-ffmpeg if empty")
    ] = ""
    timeout_s: Annotated[
        float, Meta(gt=0, description="seconds after which a video has no value")
    ] = 600.0
