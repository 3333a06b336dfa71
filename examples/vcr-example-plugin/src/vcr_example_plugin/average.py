"""Temporal smoothing: an average is differentiable, so an attacker gets exact gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core import InputDefense

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.randomness import VideoRandom

    from vcr_example_plugin.params import AverageParams


class Average(InputDefense):
    """Replaces every frame by the mean of its neighbourhood; the ends are repeated."""

    def __init__(self, params: AverageParams) -> None:
        self.params = params

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return smoothed clips.

        Args:
            clips: `[B, V, T, C, H, W]`, float32 in [0, 1]; T may be as small as 1.
            random: not used.

        Returns:
            A new tensor of the same shape, in [0, 1].
        """
        reach = self.params.reach
        count = clips.shape[2]
        here = torch.arange(count, device=clips.device)
        total = torch.zeros_like(clips)
        for offset in range(-reach, reach + 1):
            total = total + clips.index_select(2, (here + offset).clamp(0, count - 1))
        return total / (2 * reach + 1)
