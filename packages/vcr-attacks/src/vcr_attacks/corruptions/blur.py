"""Blur: Gaussian, defocus, glass, motion of the camera, zoom."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import interpolate, pad

from vcr_attacks.corruptions.base import FrameCorruption, in_pixels
from vcr_attacks.corruptions.kernels import disc, filtered, gaussian, line_taps

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.randomness import VideoRandom

GAUSSIAN = (1.0, 2.0, 3.0, 4.0, 6.0)
DEFOCUS = ((3.0, 0.1), (4.0, 0.5), (6.0, 0.5), (8.0, 0.5), (10.0, 0.5))
GLASS = ((0.7, 1, 2), (0.9, 2, 1), (1.0, 2, 3), (1.1, 3, 2), (1.5, 4, 2))
MOTION = ((10.0, 3.0), (15.0, 5.0), (15.0, 8.0), (15.0, 12.0), (20.0, 15.0))
ZOOM = ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03))


class GaussianBlur(FrameCorruption):
    """A Gaussian of ``c`` pixels."""

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        return gaussian(video, in_pixels(GAUSSIAN[level], video))


class DefocusBlur(FrameCorruption):
    """A disc, as an open aperture makes it."""

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        radius, alias = DEFOCUS[level]
        return filtered(video, disc(in_pixels(radius, video), alias, video))


class GlassBlur(FrameCorruption):
    """Pixels exchanged with neighbours between two slight blurs, as behind frosted glass.

    Every pixel takes the value of a random neighbour at most ``d`` away. The published code swaps
    pairs one after the other, which is the same up to values that are taken twice and lost.
    """

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        sigma, reach, rounds = GLASS[level]
        distance = max(1, round(in_pixels(reach, video)))
        out = gaussian(video, in_pixels(sigma, video))
        height, width = video.shape[-2:]
        y = torch.arange(height, device=video.device)[:, None]
        x = torch.arange(width, device=video.device)
        for _ in range(rounds):
            by = random.integers(-distance, distance + 1, 2, height, width).to(video.device)
            rows = (y + by[:, 0]).clamp(0, height - 1)
            columns = (x + by[:, 1]).clamp(0, width - 1)
            place = (rows * width + columns).flatten(1)[:, None, None]
            flat = out.flatten(-2)
            out = flat.gather(-1, place.expand_as(flat)).view_as(video)
        return gaussian(out, in_pixels(sigma, video))


class MotionBlurSpatial(FrameCorruption):
    """Each frame smeared along one line, at an angle between -45 and 45 degrees."""

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        radius, sigma = (in_pixels(value, video) for value in MOTION[level])
        angles = random.uniform(low=-math.pi / 4, high=math.pi / 4).tolist()
        return torch.stack(
            [smeared(one, radius, sigma, angle) for one, angle in zip(video, angles, strict=True)]
        )


class ZoomBlur(FrameCorruption):
    """The mean over a zoom into the centre."""

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        most, step = ZOOM[level]
        factors = [1 + i * step for i in range(round((most - 1) / step))]
        total = video.clone()
        for factor in factors:
            total += zoomed(video, factor)
        return total / (len(factors) + 1)


def smeared(planes: Tensor, radius: float, sigma: float, angle: float) -> Tensor:
    """Return planes ``[..., H, W]`` smeared from each pixel along a line, angle in radians."""
    taps = line_taps(radius, sigma)
    shifts = [(round(d * math.sin(angle)), round(d * math.cos(angle))) for d, _ in taps]
    height, width = planes.shape[-2:]
    # Padded once, every shift is a view.
    most_y, most_x = (max(abs(shift[axis]) for shift in shifts) for axis in (0, 1))
    flat = planes.reshape(1, -1, height, width)
    around = pad(flat, [most_x, most_x, most_y, most_y], mode="replicate")
    out = torch.zeros_like(flat)
    for (rows, columns), (_, weight) in zip(shifts, taps, strict=True):
        top, left = most_y - rows, most_x - columns
        out += weight * around[..., top : top + height, left : left + width]
    return out.view_as(planes)


def zoomed(video: Tensor, factor: float) -> Tensor:
    """Return the centre of ``[..., H, W]``, enlarged by a factor, at the old size."""
    height, width = video.shape[-2:]
    rows, columns = max(1, math.ceil(height / factor)), max(1, math.ceil(width / factor))
    top, left = (height - rows) // 2, (width - columns) // 2
    centre = video[..., top : top + rows, left : left + columns].flatten(0, -4)
    large = interpolate(centre, (height, width), mode="bilinear", align_corners=True)
    return large.view_as(video)
