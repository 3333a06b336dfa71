"""Fog, frost, snow."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from vcr_attacks.corruptions.base import FrameCorruption, in_pixels
from vcr_attacks.corruptions.blur import smeared, zoomed

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.randomness import VideoRandom

FOG = ((1.5, 2.0), (2.0, 2.0), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4))
FROST = ((1.0, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75))
SNOW = (
    (0.1, 0.3, 3.0, 0.5, 10.0, 4.0, 0.8),
    (0.2, 0.3, 2.0, 0.5, 12.0, 4.0, 0.7),
    (0.55, 0.3, 4.0, 0.9, 12.0, 8.0, 0.7),
    (0.55, 0.3, 4.5, 0.85, 12.0, 8.0, 0.65),
    (0.55, 0.3, 2.5, 0.85, 12.0, 12.0, 0.55),
)
"""Mean and deviation of the flakes, zoom, threshold, length and softness of the streaks, mixing."""

_FALL = 3.0
"""Pixels that snow falls from frame to frame, for frames of 224."""


class Fog(FrameCorruption):
    """A plasma fractal over the whole video: ``(x + a·plasma) · max / (max + a)``."""

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        strength, decay = FOG[level]
        layers = _plasmas(video, random, decay)
        most = video.amax(dim=(1, 2, 3, 4), keepdim=True)
        return (video + strength * layers) * most / (most + strength)


class Frost(FrameCorruption):
    """``a·x + b·texture`` with an icy texture.

    The published corruption overlays photographs; here the texture is computed: the ridges of a
    plasma fractal, bluish white. It is another texture of the same strength.
    """

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        kept, added = FROST[level]
        ridges = 1 - (2 * _plasmas(video, random, 1.6) - 1).abs()
        tint = video.new_tensor([0.85, 0.95, 1.0]).view(3, 1, 1)
        return kept * video + added * ridges.square() * tint


class Snow(FrameCorruption):
    """Bright streaks over a whitened video, which fall from frame to frame."""

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        mean, deviation, zoom, threshold, radius, sigma, mix = SNOW[level]
        height, width = video.shape[-2:]
        grey = (video * video.new_tensor([0.299, 0.587, 0.114]).view(3, 1, 1)).sum(2, keepdim=True)
        white = mix * video + (1 - mix) * torch.maximum(video, 1.5 * grey + 0.5)
        flakes = random.normal(1, height, width, std=deviation).to(video) + mean
        flakes = zoomed(flakes[:, None], zoom)[:, 0]
        flakes = torch.where(flakes < threshold, 0.0, flakes).clamp(0, 1)
        angles = random.uniform(low=-0.75 * math.pi, high=-0.25 * math.pi).tolist()
        out = []
        for one, layer, angle in zip(white, flakes, angles, strict=True):
            streaks = smeared(layer, in_pixels(radius, video), in_pixels(sigma, video), angle)
            both = streaks + streaks.flip(-2, -1)
            step = in_pixels(_FALL, video)
            out += [
                torch.stack([
                    frame + both.roll(
                        (round(t * step), round(-t * step / math.tan(angle))), dims=(-2, -1)
                    )
                    for t, frame in enumerate(one)
                ])
            ]  # fmt: skip
        return torch.stack(out)


def plasma(size: int, decay: float, generator: torch.Generator) -> Tensor:
    """Return a plasma fractal ``[size, size]`` in [0, 1] that tiles.

    Diamond-square: Fournier, Fussell, Carpenter, "Computer rendering of stochastic models", CACM
    25(6), 1982.

    Args:
        size: a power of two.
        decay: the noise of each finer level is divided by it.
        generator: where noise comes from.
    """
    grid = torch.zeros(size, size, dtype=torch.float64)
    step, noise = size, 1.0
    while step > 1:
        half = step // 2
        corners = grid[::step, ::step]
        shape = corners.shape

        def drawn(shape: torch.Size = shape, noise: float = noise) -> Tensor:
            return noise * (2 * torch.rand(shape, generator=generator, dtype=torch.float64) - 1)

        right, below = corners.roll(-1, 1), corners.roll(-1, 0)
        centre = (corners + right + below + right.roll(-1, 0)) / 4 + drawn()
        grid[half::step, half::step] = centre
        left, above = centre.roll(1, 1), centre.roll(1, 0)
        grid[::step, half::step] = (corners + right + centre + above) / 4 + drawn()
        grid[half::step, ::step] = (corners + below + centre + left) / 4 + drawn()
        step, noise = half, noise / decay
    low, high = grid.min(), grid.max()
    return ((grid - low) / (high - low).clamp_min(1e-12)).float()


def _plasmas(video: Tensor, random: VideoRandom, decay: float) -> Tensor:
    """Return one layer a video, ``[B, 1, 1, H, W]``."""
    height, width = video.shape[-2:]
    size = 1 << max(height, width, 2).bit_length()
    layers = [plasma(size, decay, random.generator(row)) for row in range(len(video))]
    return torch.stack(layers)[:, None, None, :height, :width].to(video)
