"""Brightness, contrast, saturation, hue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from vcr_attacks.corruptions.base import Corruption, FrameCorruption
from vcr_attacks.params.corruptions import ContrastParams

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.randomness import VideoRandom

BRIGHTNESS = (0.1, 0.2, 0.3, 0.4, 0.5)
CONTRAST = {
    "imagenet-c": (0.4, 0.3, 0.2, 0.1, 0.05),
    "mini-ssv2-c": (0.5, 0.4, 0.3, 0.2, 0.1),
}
SATURATE = ((0.3, 0.0), (0.1, 0.0), (2.0, 0.0), (5.0, 0.1), (20.0, 0.2))
HUE = (0.02, 0.05, 0.1, 0.2, 0.35)
"""Of a turn. The one table here that no publication gives."""


class Brightness(FrameCorruption):
    """``c`` added to the value of HSV."""

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        hue, saturation, value = to_hsv(video)
        return to_rgb(hue, saturation, (value + BRIGHTNESS[level]).clamp(0, 1))


class Contrast(Corruption[ContrastParams]):
    """``(x - mean) · c + mean`` with the mean of each frame and channel."""

    def __init__(self, params: ContrastParams | None = None) -> None:
        self.params = params or ContrastParams()

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        mean = video.mean(dim=(-2, -1), keepdim=True)
        return (video - mean) * CONTRAST[self.params.table][level] + mean


class Saturate(FrameCorruption):
    """Saturation of HSV times ``a`` plus ``b``: less in the first two severities, more then."""

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        hue, saturation, value = to_hsv(video)
        factor, offset = SATURATE[level]
        return to_rgb(hue, (saturation * factor + offset).clamp(0, 1), value)


class Hue(FrameCorruption):
    """Hue of HSV turned by ``c``."""

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        hue, saturation, value = to_hsv(video)
        return to_rgb(hue + HUE[level], saturation, value)


def to_hsv(video: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return hue (in turns, [0, 1)), saturation and value ``[..., H, W]`` of ``[..., 3, H, W]``.

    Smith, "Color gamut transform pairs", SIGGRAPH 1978.
    """
    red, green, blue = video.unbind(dim=-3)
    value = video.amax(dim=-3)
    chroma = value - video.amin(dim=-3)
    safe = torch.where(chroma == 0, 1.0, chroma)
    sector = torch.where(
        value == red,
        ((green - blue) / safe) % 6,
        torch.where(value == green, (blue - red) / safe + 2, (red - green) / safe + 4),
    )
    hue = torch.where(chroma == 0, 0.0, sector / 6)
    saturation = torch.where(value == 0, 0.0, chroma / torch.where(value == 0, 1.0, value))
    return hue, saturation, value


def to_rgb(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    """Return ``[..., 3, H, W]`` of hue, saturation and value; the inverse of :func:`to_hsv`."""
    channels = []
    for offset in (5.0, 3.0, 1.0):
        k = (offset + hue * 6) % 6
        ramp = torch.minimum(k, 4 - k).clamp(0, 1)
        channels.append(value - value * saturation * ramp)
    return torch.stack(channels, dim=-3)
