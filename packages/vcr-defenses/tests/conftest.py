"""Clips and generators shared by the defense tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from vcr_core.randomness import VideoRandom


@pytest.fixture
def make_clips() -> Callable[..., torch.Tensor]:
    """Return a maker of random clips ``[B, V, T, 3, H, W]`` on the 8-bit grid."""

    def make(*shape: int, seed: int = 0) -> torch.Tensor:
        shape = shape or (2, 1, 3, 3, 33, 50)
        generator = torch.Generator().manual_seed(seed)
        return torch.randint(0, 256, shape, generator=generator).float() / 255

    return make


@pytest.fixture
def make_random() -> Callable[..., VideoRandom]:
    """Return a maker of per-video generators for ``count`` videos."""

    def make(count: int = 2, seed: int = 7) -> VideoRandom:
        return VideoRandom([seed + 1000 * i for i in range(count)])

    return make


@pytest.fixture
def smooth_clips() -> torch.Tensor:
    """Return one smooth moving pattern ``[1, 1, 4, 3, 48, 64]`` on the 8-bit grid."""
    t, y, x = torch.meshgrid(torch.arange(4), torch.arange(48), torch.arange(64), indexing="ij")
    planes = [
        0.5 + 0.35 * torch.sin(x / (5 + c) + t / 2) * torch.cos(y / (4 + c)) for c in range(3)
    ]
    clips = torch.stack(planes, dim=1).view(1, 1, 4, 3, 48, 64)
    return (clips * 255).round() / 255
