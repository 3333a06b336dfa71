"""Rain.

Yi et al., "Benchmarking the robustness of spatial-temporal models against corruptions", NeurIPS
2021, with the counts, lengths and factors of their code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn.functional import avg_pool2d, pad

from vcr_attacks.corruptions.base import FrameCorruption, in_pixels

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.randomness import VideoRandom

RAIN = ((770, 10, 0.8), (770, 30, 0.8), (770, 60, 0.7), (500, 60, 0.6), (400, 80, 0.5))
"""Pixels of the frame per streak, length of a streak, factor of the contrast."""

_COLOUR = 220 / 255
_SLANT = 10


class Rain(FrameCorruption):
    """Bright streaks at other places in every frame, blurred, and less contrast.

    Streaks are one pixel wide in frames of every size; in small frames there are fewer and shorter
    ones, so that they cover the same part. All streaks of a video have one slant, which is drawn;
    the published code draws one for every frame and then uses another, which is fixed.
    """

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        area, length, factor = RAIN[level]
        height, width = video.shape[-2:]
        unit = in_pixels(1, video)
        streaks = max(1, round(height * width / area / unit))
        drop = max(2, round(length * unit))
        slant = float(random.uniform(low=-_SLANT, high=_SLANT)) * unit
        places = random.uniform(video.shape[1], streaks, 2)[0].to(video)
        mask = _streaks(places, height, width, drop, slant) * _COLOUR
        frames = video[0]
        bright = frames + mask * (1 - frames) * (1 - frames.mean(dim=(1, 2, 3), keepdim=True))
        soft = avg_pool2d(pad(bright, (1, 1, 1, 1), mode="replicate"), 3, stride=1)
        wet = (frames + mask * (soft - frames)).clamp(0, 1)
        mean = wet.mean(dim=(-2, -1), keepdim=True)
        return ((wet - mean) * factor + mean).view_as(video)


def _streaks(places: Tensor, height: int, width: int, drop: int, slant: float) -> Tensor:
    """Return masks ``[T, 1, H, W]`` of 0 and 1.

    Args:
        places: ``[T, N, 2]`` in [0, 1), where streaks begin.
        height: of a frame.
        width: of a frame.
        drop: rows that a streak crosses.
        slant: columns that it crosses.
    """
    along = torch.arange(drop, device=places.device)
    left = min(slant, 0.0)
    top = (places[..., :1] * max(height - drop, 1)).long()
    start = left + places[..., 1:] * (width - abs(slant) - 2 * left)
    rows = (top + along).clamp(0, height - 1)
    columns = (start + along * (slant / drop)).round().long()
    inside = (columns >= 0) & (columns < width)
    # What lies outside is painted on one more pixel, which is thrown away.
    flat = torch.where(inside, rows * width + columns, height * width)
    masks = places.new_zeros(len(places), height * width + 1)
    masks.scatter_(1, flat.flatten(1), 1.0)
    return masks[:, :-1].reshape(-1, 1, height, width)
