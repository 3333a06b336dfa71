"""Directions that are an outer product of factors of time, colour, height and width."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

if TYPE_CHECKING:
    from torch import Tensor


class RankOne:
    """Maps factor vectors ``[b, size]`` to directions whose largest value is 1.

    Args:
        video: ``[B, T, C, H, W]``, for sizes.
        stride: pixels from one free value of height and width to the next, linear in between.

    Attributes:
        size: length of a factor vector.
    """

    def __init__(self, video: Tensor, stride: int) -> None:
        _, frames, channels, height, width = video.shape
        self._height, self._width = height, width
        self._lengths = [frames, channels, _knots(height, stride), _knots(width, stride)]
        self.size = sum(self._lengths)

    def unit(self, factors: Tensor) -> Tensor:
        """Return factors ``[b, size]`` with each of the four parts at length 1."""
        parts = torch.split(factors, self._lengths, dim=1)
        return torch.cat([p / p.norm(dim=1, keepdim=True).clamp_min(1e-12) for p in parts], dim=1)

    def directions(self, factors: Tensor) -> Tensor:
        """Return ``[b, T, C, H, W]``, each with a largest absolute value of 1."""
        time, colour, down, across = torch.split(factors, self._lengths, dim=1)
        down, across = _stretched(down, self._height), _stretched(across, self._width)
        product = torch.einsum("bt,bc,bh,bw->btchw", time, colour, down, across)
        peak = product.abs().flatten(1).amax(dim=1).clamp_min(1e-30)
        return product / peak.view(-1, 1, 1, 1, 1)


def _knots(size: int, stride: int) -> int:
    return min(size, -(-size // stride) + 1)


def _stretched(knots: Tensor, size: int) -> Tensor:
    return F.interpolate(knots.unsqueeze(1), size, mode="linear", align_corners=True).squeeze(1)
