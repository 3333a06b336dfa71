"""Movements of the camera.

Schiappa et al., "A large-scale robustness analysis of video action recognition models", CVPR 2023.
What is not in the frame is black after a turn, as in their code, and repeats the border after a
shift.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import grid_sample

from vcr_attacks.corruptions.base import FrameCorruption, in_pixels
from vcr_attacks.corruptions.kernels import moved

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.randomness import VideoRandom

STATIC_ROTATE = (7.5, 15.0, 30.0, 45.0, 90.0)
JITTER_ROTATE = (7, 13, 19, 25, 31)
JITTER_TRANSLATE = (8, 16, 24, 32, 40)


class StaticRotate(FrameCorruption):
    """The whole video turned anticlockwise by one angle in degrees."""

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        angles = torch.full(video.shape[:2], STATIC_ROTATE[level])
        return turned(video.flatten(0, 1), angles.flatten()).view_as(video)


class JitterRotate(FrameCorruption):
    """Every frame turned by a whole number of degrees, drawn from ``-c`` to ``c``."""

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        most = JITTER_ROTATE[level]
        angles = random.integers(-most, most + 1, video.shape[1]).to(video.dtype)
        return turned(video.flatten(0, 1), angles.flatten()).view_as(video)


class JitterTranslate(FrameCorruption):
    """Every frame shifted up and left by fewer than ``c`` pixels, drawn for both directions.

    In small frames each severity may be at least one pixel more than the one before.
    """

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        limit = max(level + 2, round(in_pixels(JITTER_TRANSLATE[level], video)))
        offsets = random.integers(0, limit, video.shape[1], 2).flatten(0, 1).tolist()
        frames = video.flatten(0, 1)
        shifted = [moved(f, -y, -x) for f, (y, x) in zip(frames, offsets, strict=True)]
        return torch.stack(shifted).view_as(video)


def turned(frames: Tensor, degrees: Tensor) -> Tensor:
    """Return frames ``[N, C, H, W]``, each turned anticlockwise around its centre.

    Args:
        frames: what to turn; corners that come from outside are black.
        degrees: ``[N]``.
    """
    height, width = frames.shape[-2:]
    angle = degrees.to(frames) * (math.pi / 180)
    sine, cosine = angle.sin()[:, None, None], angle.cos()[:, None, None]
    y = torch.arange(height, device=frames.device, dtype=frames.dtype) - (height - 1) / 2
    x = torch.arange(width, device=frames.device, dtype=frames.dtype) - (width - 1) / 2
    rows = y[:, None] * cosine + x * sine
    columns = x * cosine - y[:, None] * sine
    grid = torch.stack([columns * (2 / width), rows * (2 / height)], dim=-1)
    return grid_sample(frames, grid, mode="bilinear", padding_mode="zeros", align_corners=False)
