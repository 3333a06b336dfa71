"""Inputs of the checks: reproducible, on the 8-bit grid, neither flat nor pure noise."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def video(seed: int, batch: int = 1, frames: int = 4, height: int = 32, width: int = 32) -> Tensor:
    """Return ``[batch, frames, 3, height, width]`` float32 in [0, 1], values ``k/255``.

    A smooth texture that drifts, with a little noise; every row is different.
    """
    made = [_one(seed * 1000 + row, frames, height, width) for row in range(batch)]
    return torch.stack(made)


def noisy(clean: Tensor, levels: int, seed: int) -> Tensor:
    """Return ``clean`` with random signs of ``levels`` 8-bit levels added, in [0, 1]."""
    draw = torch.randint(0, 2, clean.shape, generator=torch.Generator().manual_seed(seed))
    grid = (clean * 255).round() + levels * (2 * draw - 1)
    return grid.clamp(0, 255) / 255


def _one(seed: int, frames: int, height: int, width: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.rand(1, 3, 6, 6, generator=generator)
    noise = torch.rand(frames, 3, height, width, generator=generator)
    big = F.interpolate(coarse, (height + frames, width + frames), mode="bicubic")[0]
    drift = [big[:, k : k + height, k : k + width] for k in range(frames)]
    smooth = 0.2 + 0.6 * torch.stack(drift).clamp(0, 1)
    return ((smooth + 0.05 * (noise - 0.5)).clamp(0, 1) * 255).round() / 255
