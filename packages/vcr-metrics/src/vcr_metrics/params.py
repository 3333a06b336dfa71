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
        Literal["alex", "vgg"],
        Meta(description="backbone; alex is the usual one of reports, vgg of losses"),
    ] = "alex"
    backbone: Annotated[
        str, Meta(description="torchvision's file of the backbone; torch's hub cache if empty")
    ] = ""


class DistsParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``dists``."""

    backbone: Annotated[
        str, Meta(description="torchvision's file of VGG16; torch's hub cache if empty")
    ] = ""
