"""The first layers of the tiny networks of published families."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch.nn.functional as F
from torch import nn

if TYPE_CHECKING:
    from torch import Tensor

_MEAN = 0.45
_GAIN = 2.5
"""A difference is a few times smaller than a colour."""


class ColourAndMotion(nn.Module):
    """A 5 x 5 convolution with stride 4 of each frame, and another of its forward difference.

    Differences are taken behind the convolution: the same by linearity, and cheaper there.

    Args:
        outputs: channels.
        step: 1 for all frames but the last, 2 for every second one.
    """

    def __init__(self, outputs: int, *, step: int = 1) -> None:
        super().__init__()
        self.step = step
        self.conv = nn.Conv2d(3, 2 * outputs, 5, 4, 2, bias=False)

    def forward(self, pooled: Tensor) -> Tensor:
        """Return ``[N, outputs, 15 or 8, 8, 8]`` of ``[N, 16, 3, 32, 32]`` in [0, 1]."""
        n, frames = pooled.shape[:2]
        maps: Tensor = self.conv(pooled.flatten(0, 1) - _MEAN)
        colour, motion = maps.reshape(n, frames, *maps.shape[1:]).chunk(2, dim=2)
        changes = motion[:, 1 :: self.step] - motion[:, : -1 : self.step]
        x = colour[:, : -1 : self.step] + changes * _GAIN
        return x.transpose(1, 2).contiguous()


class Stem(nn.Module):
    """To a map of 8 x 8 x 8 positions, or of 8 x 4 x 4 if ``halve``.

    A strided convolution within frames, one over time, and, if ``halve``, another within frames.
    Plain patches, which the published transformers start with, need far more clips than a tiny
    model is trained on.
    """

    def __init__(self, inner: int, outputs: int, *, halve: bool) -> None:
        super().__init__()
        self.space = ColourAndMotion(inner)
        self.space_norm = nn.BatchNorm3d(inner)
        middle = 2 * inner if halve else outputs
        self.time = nn.Conv3d(inner, middle, (3, 1, 1), (2, 1, 1), (1, 0, 0), bias=False)
        self.time_norm = nn.BatchNorm3d(middle)
        self.halve: nn.Module | None = None
        if halve:
            self.halve = nn.Conv3d(middle, outputs, (1, 3, 3), (1, 2, 2), (0, 1, 1), bias=False)
            self.halve_norm = nn.BatchNorm3d(outputs)

    def forward(self, pooled: Tensor) -> Tensor:
        """Return ``[N, outputs, 8, h, w]`` of pooled clips ``[N, 16, 3, 32, 32]`` in [0, 1]."""
        x: Tensor = F.relu(self.space_norm(self.space(pooled)))
        x = self.time_norm(self.time(x))
        if self.halve is not None:
            x = self.halve_norm(self.halve(F.relu(x)))
        return x
