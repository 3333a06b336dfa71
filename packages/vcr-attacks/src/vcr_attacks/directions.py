"""Orthonormal directions in the space of one video."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import torch

if TYPE_CHECKING:
    from torch import Tensor


class Directions(Protocol):
    """Some vectors of an orthonormal basis."""

    count: int

    def __getitem__(self, index: int) -> Tensor:
        """Return ``[T, C, H, W]`` of length 1."""
        ...


class Pixels:
    """One value of one pixel at a time."""

    def __init__(self, video: Tensor) -> None:
        self._zero = torch.zeros_like(video[0])
        self.count = self._zero.numel()

    def __getitem__(self, index: int) -> Tensor:
        """Return ``[T, C, H, W]``, 1 at one place."""
        direction = self._zero.clone()
        direction.view(-1)[index] = 1
        return direction


class Waves:
    """Products of cosines over time, height and width in one channel: the lowest of the 3-D DCT.

    Args:
        video: ``[B, T, C, H, W]``, for sizes.
        times: frequencies over time.
        grid: frequencies along height and along width.
    """

    def __init__(self, video: Tensor, times: int, grid: int) -> None:
        _, frames, channels, height, width = video.shape
        self._time = cosines(frames, min(times, frames)).to(video)
        self._down = cosines(height, min(grid, height)).to(video)
        self._across = cosines(width, min(grid, width)).to(video)
        self._zero = torch.zeros_like(video[0])
        self._sizes = (len(self._time), channels, len(self._down), len(self._across))
        self.count = math.prod(self._sizes)

    def __getitem__(self, index: int) -> Tensor:
        """Return ``[T, C, H, W]`` of length 1, other than 0 in one channel."""
        places = []
        for size in reversed(self._sizes):
            index, place = divmod(index, size)
            places.append(place)
        across, down, channel, time = places
        frame = self._down[down].unsqueeze(1) * self._across[across]
        direction = self._zero.clone()
        direction[:, channel] = self._time[time].view(-1, 1, 1) * frame
        return direction


def cosines(size: int, count: int) -> Tensor:
    """Return ``[count, size]``: the first vectors of the orthonormal DCT-II.

    Example:
        >>> cosines(4, 1).tolist()
        [[0.5, 0.5, 0.5, 0.5]]
    """
    place = torch.arange(size, dtype=torch.float64) + 0.5
    order = torch.arange(count, dtype=torch.float64).unsqueeze(1)
    waves = (math.pi / size * order * place).cos() * math.sqrt(2 / size)
    waves[0] /= math.sqrt(2)
    return waves.to(torch.float32)
