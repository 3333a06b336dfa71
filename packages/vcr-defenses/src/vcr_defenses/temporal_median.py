"""Median over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcr_core.protocols import InputDefense

from vcr_defenses.medians import median_over
from vcr_defenses.params.temporal import TemporalMedianParams
from vcr_defenses.time_axis import frames_first, frames_third, replicate_ends

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.randomness import VideoRandom


class TemporalMedian(InputDefense):
    """``y_t = median(x_{t-r}, …, x_{t+r})`` for each pixel and channel, in each clip.

    The first and the last frame are repeated at the ends, so every window has a middle value. The
    gradient is that of the selected frame's pixel, exact wherever a window has one median.
    """

    stochastic = False

    def __init__(self, params: TemporalMedianParams | None = None) -> None:
        self.params = params or TemporalMedianParams()

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return filtered clips; every value is one of the input's.

        Args:
            clips: ``[B, V, T, C, H, W]``, float in [0, 1].
            random: not used.
        """
        window, count = self.params.window, clips.shape[2]
        if window == 1 or count == 1:
            return clips.clone()
        padded = replicate_ends(frames_first(clips), window // 2)
        views = [(slice(k, k + count),) for k in range(window)]
        return frames_third(median_over(padded, views, 1), clips)
