"""Bicubic resizing as two matrix products: linear, deterministic, differentiable twice."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor


def resized(frames: Tensor, short_side: int) -> Tensor:
    """Return frames with another short side, the long one in proportion.

    Bicubic with antialiasing, as Pillow's, but without its rounding to 8 bits and clipping: values
    may leave [0, 1] a little beside sharp edges. Clipping would take the gradient from every pixel
    of a saturated area.

    Args:
        frames: ``[..., H, W]``.
        short_side: of the result, in pixels.
    """
    height, width = frames.shape[-2:]
    if min(height, width) == short_side:
        return frames
    scale = short_side / min(height, width)
    to = [max(short_side, round(side * scale)) for side in (height, width)]
    down, across = (
        _weights(side, out).to(frames) for side, out in zip((height, width), to, strict=True)
    )
    return down @ frames @ across.T


@lru_cache(maxsize=32)
def _weights(side: int, to: int) -> Tensor:
    """Return ``[to, side]``: what every pixel of a line adds to every pixel of the resized line."""
    lines = torch.eye(side)[None, None]
    resampled = functional.interpolate(
        lines, (to, side), mode="bicubic", align_corners=False, antialias=True
    )
    return resampled[0, 0]
