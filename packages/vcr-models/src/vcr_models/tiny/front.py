"""The fixed first steps that all tiny networks share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch.nn.functional as F
from torch import cat

from vcr_models.resizing import resized

if TYPE_CHECKING:
    from torch import Tensor

SOURCE_SIZE = 64
"""Side of the square that the classifier crops from a frame."""

POOLED_SIZE = 32
"""Side of the square that the networks see."""

_MEAN = 0.45
_STD = 0.25
_DIFFERENCE_STD = 0.10


def resize_and_crop(clips: Tensor, size: int = SOURCE_SIZE) -> Tensor:
    """Bring the short side to ``size`` and crop the centre square.

    Bilinear with ``align_corners=False`` and without anti-aliasing; differentiable. Clips that have
    the right size already pass unchanged.

    Args:
        clips: ``[N, T, C, H, W]`` float in [0, 1], any H and W.
        size: side of the result in pixels.

    Returns:
        ``[N, T, C, size, size]``.
    """
    frames = resized(clips, size)
    if frames.shape[-2:] == (size, size):
        return frames
    top = (frames.shape[-2] - size) // 2
    left = (frames.shape[-1] - size) // 2
    return frames[..., top : top + size, left : left + size]


def pool(clips: Tensor) -> Tensor:
    """Average over 2x2 blocks: ``[N, T, C, 64, 64]`` to ``[N, T, C, 32, 32]``, same range."""
    n, t, c, h, w = clips.shape
    return F.avg_pool2d(clips.reshape(n * t, c, h, w), 2).reshape(n, t, c, h // 2, w // 2)


def differences(pooled: Tensor) -> Tensor:
    """Scaled forward differences in time.

    Args:
        pooled: ``[N, T, 3, 32, 32]`` in [0, 1].

    Returns:
        ``[N, T-1, 3, 32, 32]``, frame t+1 minus frame t, of order one where something moves.
    """
    return (pooled[:, 1:] - pooled[:, :-1]) / _DIFFERENCE_STD


def colour_and_differences(pooled: Tensor) -> Tensor:
    """Normalised colours of all frames but the last, beside the forward differences.

    Args:
        pooled: ``[N, T, 3, 32, 32]`` in [0, 1].

    Returns:
        ``[N, T-1, 6, 32, 32]``.
    """
    return cat([(pooled[:, :-1] - _MEAN) / _STD, differences(pooled)], dim=2)
