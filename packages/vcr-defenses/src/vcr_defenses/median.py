"""Spatial median of every frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcr_core.protocols import InputDefense

from vcr_defenses.gaussian_blur import reflect_pad
from vcr_defenses.medians import median_over
from vcr_defenses.params.spatial import MedianParams

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.randomness import VideoRandom


class Median(InputDefense):
    """Median of a square window around each pixel, channels apart, borders mirrored.

    Xu, Evans, Qi, "Feature squeezing", NDSS 2018, section II. Deterministic; the gradient is that
    of the selected pixel, exact wherever a window has one median.
    """

    stochastic = False

    def __init__(self, params: MedianParams | None = None) -> None:
        self.params = params or MedianParams()

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return filtered clips; every value is one of the input's.

        Args:
            clips: ``[B, V, T, C, H, W]``, float in [0, 1].
            random: not used.
        """
        size = self.params.size
        if size == 1:
            return clips.clone()
        height, width = clips.shape[-2:]
        planes = clips.reshape(-1, height, width)
        for axis in (-2, -1):
            planes = reflect_pad(planes, size // 2, axis)
        views = [
            (slice(None), slice(y, y + height), slice(x, x + width))
            for y in range(size)
            for x in range(size)
        ]
        return median_over(planes, views, 0).view_as(clips)
