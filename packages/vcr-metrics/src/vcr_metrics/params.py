"""Parameters of the metrics; importing this module needs msgspec only."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class PsnrParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``psnr``."""

    frame_cap_db: Annotated[
        float,
        Meta(gt=0, description="what an identical frame counts as in psnr_frame_mean, in dB"),
    ] = 100.0
