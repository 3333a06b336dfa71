"""Noise, drawn for every value of every frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from vcr_attacks.corruptions.base import Corruption, FrameCorruption
from vcr_attacks.params.corruptions import TableParams

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.randomness import VideoRandom

GAUSSIAN = (0.08, 0.12, 0.18, 0.26, 0.38)
IMPULSE = (0.03, 0.06, 0.09, 0.17, 0.27)
SHOT = {
    "imagenet-c": (60.0, 25.0, 12.0, 5.0, 3.0),
    "kinetics400-p": (250.0, 100.0, 50.0, 30.0, 15.0),
}
SPECKLE = {
    "imagenet-c": (0.15, 0.2, 0.35, 0.45, 0.6),
    "kinetics400-p": (0.15, 0.2, 0.25, 0.3, 0.35),
}


class GaussianNoise(FrameCorruption):
    """``x + N(0, c²)``."""

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        return video + random.normal(*video.shape[1:], std=GAUSSIAN[level]).to(video)


class ImpulseNoise(FrameCorruption):
    """Salt and pepper on a part ``c`` of the values, half each."""

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        part = IMPULSE[level]
        draw = random.uniform(*video.shape[1:]).to(video)
        return torch.where(draw < part / 2, 0.0, torch.where(draw < part, 1.0, video))


class ShotNoise(Corruption[TableParams]):
    """``Poisson(c · x) / c``: the fewer photons, the noisier."""

    def __init__(self, params: TableParams | None = None) -> None:
        self.params = params or TableParams()

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        photons = SHOT[self.params.table][level]
        rates = (video * photons).cpu()
        counts = [torch.poisson(rate, random.generator(row)) for row, rate in enumerate(rates)]
        return torch.stack(counts).to(video) / photons


class SpeckleNoise(Corruption[TableParams]):
    """``x + x · N(0, c²)``."""

    def __init__(self, params: TableParams | None = None) -> None:
        self.params = params or TableParams()

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        std = SPECKLE[self.params.table][level]
        return video + video * random.normal(*video.shape[1:], std=std).to(video)
