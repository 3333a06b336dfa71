"""Gaussian blur of every frame, fixed or random."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import InputDefense

from vcr_defenses.draws import by_draw, draw_shape
from vcr_defenses.params.spatial import GaussianBlurParams
from vcr_defenses.pixel_range import clamp_straight_through

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.randomness import VideoRandom

_RANDOM_SIGMA = (5.0, 25.0)
_RANDOM_RADIUS = (1, 5)


def gaussian_taps(sigma: Tensor, radius: Tensor) -> Tensor:
    """Return normalised Gaussian kernels ``[n, 2 * max(radius) + 1]``.

    Args:
        sigma: ``[n]`` standard deviations in pixels, 0 or more; 0 gives the identity.
        radius: ``[n]`` integers; a kernel is zero beyond its own radius.
    """
    reach = int(radius.max())
    offsets = torch.arange(-reach, reach + 1, device=sigma.device, dtype=sigma.dtype)
    # Dividing before squaring keeps a tiny sigma from underflowing to 0/0.
    scaled = offsets / sigma.clamp_min(torch.finfo(sigma.dtype).tiny).unsqueeze(1)
    weights = torch.exp(-scaled.square() / 2) * (offsets.abs() <= radius.unsqueeze(1))
    return weights / weights.sum(dim=1, keepdim=True)


def reflect_pad(planes: Tensor, margin: int, axis: int) -> Tensor:
    """Return ``planes`` mirrored about the outermost pixels by ``margin`` along ``axis``.

    Unlike the library's padding it accepts a margin larger than the frame and its gradient is
    deterministic on every device, because it consists of slices.
    """
    while margin > 0:
        size = planes.shape[axis]
        step = min(margin, size - 1)
        if step == 0:
            repeats = [1] * planes.ndim
            repeats[axis] = 2 * margin + 1
            return planes.repeat(repeats)
        before = planes.narrow(axis, 1, step).flip(axis)
        after = planes.narrow(axis, size - 1 - step, step).flip(axis)
        planes = torch.cat([before, planes, after], dim=axis)
        margin -= step
    return planes


def blur(planes: Tensor, taps: Tensor) -> Tensor:
    """Return planes ``[n, p, H, W]`` filtered along both axes with kernels ``[n, k]``."""
    count = taps.shape[1]
    weights = taps.to(planes.dtype).view(-1, count, 1, 1, 1)
    for axis in (-2, -1):
        size = planes.shape[axis]
        padded = reflect_pad(planes, count // 2, axis)
        # Sums of shifted slices beat a grouped convolution on the CPU.
        planes = padded.narrow(axis, 0, size) * weights[:, 0]
        for shift in range(1, count):
            planes = planes + padded.narrow(axis, shift, size) * weights[:, shift]
    return planes


class GaussianBlur(InputDefense):
    """Separable Gaussian blur per frame and channel with mirrored borders.

    ``y = g_sigma * x`` with ``g_i`` proportional to ``exp(-i² / (2 sigma²))``. Mode ``fixed`` is
    deterministic. Mode ``vcr`` draws sigma from U(5, 25) and the kernel size from 3, 5, 7, 9, 11,
    as the VCR-Bench code does; at these sigmas the kernel is nearly a box whose size sets the
    strength. That code also pads with zeros, which darkens the border: not taken over.
    """

    def __init__(self, params: GaussianBlurParams | None = None) -> None:
        self.params = params or GaussianBlurParams()

    @property
    def stochastic(self) -> bool:
        """Whether these parameters make the defense random."""
        return self.params.mode == "vcr"

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return blurred clips; linear in ``clips``, with an exact gradient.

        Args:
            clips: ``[B, V, T, C, H, W]``, float in [0, 1].
            random: used in mode ``vcr`` only; the same two draws a video whatever the clips.
        """
        if self.params.mode == "fixed":
            sigma = torch.tensor([self.params.sigma], device=clips.device)
            radius = torch.tensor([self.params.kernel_size // 2], device=clips.device)
        else:
            shape = draw_shape(self.params.per, clips)
            low, high = _RANDOM_SIGMA
            sigma = random.uniform(*shape, low=low, high=high).flatten().to(clips.device)
            least, most = _RANDOM_RADIUS
            radius = random.integers(least, most + 1, *shape).flatten().to(clips.device)
        taps = gaussian_taps(sigma.double(), radius)
        blurred = blur(by_draw(clips, len(taps)), taps)
        return clamp_straight_through(blurred.view_as(clips))
