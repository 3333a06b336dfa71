"""Bilateral filter over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import InputDefense

from vcr_defenses.params.temporal import BilateralParams
from vcr_defenses.pixel_range import clamp_straight_through
from vcr_defenses.time_axis import frames_first, frames_third

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.randomness import VideoRandom

_PART_ELEMENTS = 2**16


class Bilateral(InputDefense):
    """Mean over nearby frames, weighted by nearness in time and in value.

    ``y_t = sum_k w_tk x_k / sum_k w_tk`` with ``w_tk = exp(-(t - k)² / (2 s_t²)) exp(-(x_t - x_k)²
    / (2 s_c²))`` for each pixel and channel, ``|t - k| <= radius``, the frame itself included
    (Tomasi and Manduchi, ICCV 1998, along time). A convex combination with an exact gradient.
    """

    stochastic = False

    def __init__(self, params: BilateralParams | None = None) -> None:
        self.params = params or BilateralParams()

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return filtered clips; windows end where the clip ends.

        Args:
            clips: ``[B, V, T, C, H, W]``, float in [0, 1].
            random: not used.
        """
        rows = frames_first(clips)
        size = max(1, _PART_ELEMENTS // len(rows))
        parts = [self._filter(part) for part in torch.split(rows, size, dim=1)]
        return clamp_straight_through(frames_third(torch.cat(parts, dim=1), clips))

    def _filter(self, rows: Tensor) -> Tensor:
        """Return rows ``[T, P]`` filtered along the first axis."""
        count = len(rows)
        # Sums of differences to the centre: a still pixel stays what it is to the last bit.
        moved, weights = torch.zeros_like(rows), torch.ones_like(rows)
        for lag in range(1, min(self.params.radius, count - 1) + 1):
            step = rows[lag:] - rows[:-lag]
            exponent = -(lag**2) / (2 * self.params.sigma_time**2)
            weight = torch.exp(step.square() * (-1 / (2 * self.params.sigma_color**2)) + exponent)
            pull = weight * step
            none = rows.new_zeros(lag, rows.shape[1])
            moved = moved + torch.cat([pull, none]) - torch.cat([none, pull])
            weights = weights + torch.cat([weight, none]) + torch.cat([none, weight])
        return rows + moved / weights
