"""Exchange of low-frequency amplitude and phase between images (FreqPure).

Pei et al., "Diffusion-based adversarial purification from the perspective of the frequency
domain", ICML 2025, section 4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import torch

if TYPE_CHECKING:
    from torch import Tensor


def low_pass(height: int, width: int, radius: float, device: torch.device | str = "cpu") -> Tensor:
    """Return ``[height, width]`` bool: frequencies ``sqrt(u² + v²) <= radius``, FFT order.

    Frequencies are whole numbers of periods a side, the same for both signs, so that a masked
    spectrum of a real image is that of a real image, for odd sizes too.
    """
    u = torch.fft.fftfreq(height, 1 / height, device=device)
    v = torch.fft.fftfreq(width, 1 / width, device=device)
    inside: Tensor = u[:, None].square() + v.square() <= radius**2
    return inside


def wrap_angle(angle: Tensor) -> Tensor:
    """Return angles in [-pi, pi)."""
    return torch.remainder(angle + math.pi, 2 * math.pi) - math.pi


def exchange(
    images: Tensor,
    reference: Tensor,
    *,
    amplitude_radius: float,
    phase_radius: float,
    phase: Literal["project", "replace"],
    delta: float,
) -> Tensor:
    """Return images with low-frequency amplitude, and nearly the phase, of a reference.

    Args:
        images: ``[N, C, H, W]`` where 0 is black, so that the mean's phase is 0.
        reference: same shape.
        amplitude_radius: amplitudes up to this frequency are the reference's.
        phase_radius: phases up to this frequency are moved.
        phase: ``project`` moves them to within ``delta`` of the reference's, ``replace`` onto it.
        delta: in radians; 0 is ``replace``, pi or more leaves the phases alone.
    """
    ours, theirs = torch.fft.fft2(images), torch.fft.fft2(reference)
    height, width = images.shape[-2:]
    low = low_pass(height, width, amplitude_radius, images.device)
    amplitude = torch.where(low, theirs.abs(), ours.abs())
    target = theirs.angle()
    if phase == "project":
        away = wrap_angle(ours.angle() - target)
        target = target + away.clamp(-delta, delta)
    low = low_pass(height, width, phase_radius, images.device)
    angle = torch.where(low, target, ours.angle())
    # Where a mean or a highest frequency changes sign, no projected phase is that of a real image.
    exchanged: Tensor = torch.fft.ifft2(torch.polar(amplitude, angle)).real
    return exchanged
