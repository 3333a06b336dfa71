"""Integer test patterns shared by the metric tests; reproducible in any language."""

from __future__ import annotations

import pytest
import torch


def _patterns(frames: int, height: int, width: int) -> dict[str, torch.Tensor]:
    t, c, y, x = torch.meshgrid(
        torch.arange(frames),
        torch.arange(3),
        torch.arange(height),
        torch.arange(width),
        indexing="ij",
    )
    base = 96 + ((3 * x + 2 * t) % 64) + ((2 * y) % 48) + 16 * c
    checks = torch.where((x // 4 + y // 4 + t) % 2 == 0, base + 4, base - 4)
    stripes = torch.where((3 * x + 5 * y + 7 * t + 2 * c) % 4 < 2, base + 8, base - 8)
    return {
        name: levels.to(torch.uint8)
        for name, levels in (("B", base), ("C", checks), ("D", stripes))
    }


@pytest.fixture(scope="session")
def patterns() -> dict[str, torch.Tensor]:
    """Return B, C and D as uint8 ``[8, 3, 64, 96]``."""
    return _patterns(8, 64, 96)


@pytest.fixture(scope="session")
def large_patterns() -> dict[str, torch.Tensor]:
    """Return B, C and D as uint8 ``[2, 3, 192, 192]``."""
    return _patterns(2, 192, 192)
