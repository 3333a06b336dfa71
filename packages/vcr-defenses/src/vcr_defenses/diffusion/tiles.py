"""A denoiser on frames larger than it was trained at: overlapping tiles whose noise is blended."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Self

import torch

from vcr_defenses.diffusion.denoiser import Denoiser, eps_in_parts

if TYPE_CHECKING:
    from torch import Tensor

    from vcr_defenses.diffusion.schedule import NoiseSchedule


def tile_starts(length: int, side: int, overlap: float) -> list[int]:
    """Return where tiles of ``side`` begin so that they cover ``length`` evenly.

    Neighbours share at least the part ``overlap`` of a side.

    Example:
        >>> tile_starts(100, 64, 0.25)
        [0, 36]
    """
    if length <= side:
        return [0]
    count = math.ceil((length - side) / max(1, math.floor(side * (1 - overlap)))) + 1
    return [round(i * (length - side) / (count - 1)) for i in range(count)]


class TiledDenoiser:
    """A denoiser whose prediction is the blend of its predictions on tiles.

    All tiles see the same noisy frame and are blended before every step, so no seams appear
    (Bar-Tal et al., "MultiDiffusion", ICML 2023, equation 5, with weights that fall to the edge).

    Args:
        inner: sees tiles only.
        side: of a tile, in pixels.
        overlap: part of a side that neighbours share at least, 0 to below 1.
        chunk: tiles that pass at once.
    """

    def __init__(self, inner: Denoiser, side: int, overlap: float, chunk: int) -> None:
        self._inner = inner
        self._side = side
        self._overlap = overlap
        self._chunk = chunk

    @property
    def schedule(self) -> NoiseSchedule:
        """The levels of its training steps."""
        return self._inner.schedule

    @property
    def size(self) -> int | None:
        """``None``: any size from one tile on will do."""
        return None

    @property
    def multiple(self) -> int:
        """1: tiles may lie anywhere."""
        return 1

    def predict_eps(self, x_t: Tensor, t: int) -> Tensor:
        """Return the blended noise of ``[N, C, H, W]``, both sides at least one tile's.

        Raises:
            ValueError: for images smaller than a tile.
        """
        height, width = x_t.shape[-2:]
        side = self._side
        if min(height, width) < side:
            raise ValueError(f"frames of {height} x {width} are smaller than a tile of {side}")
        places = [
            (top, left)
            for top in tile_starts(height, side, self._overlap)
            for left in tile_starts(width, side, self._overlap)
        ]
        if len(places) == 1:
            return eps_in_parts(self._inner, x_t, t, self._chunk)
        tiles = torch.cat([x_t[..., y : y + side, x : x + side] for y, x in places])
        parts = eps_in_parts(self._inner, tiles, t, self._chunk).split_with_sizes(
            [len(x_t)] * len(places)
        )
        # Positive up to the edge: a frame's own edge pixels are in one tile only.
        ramp = 1 - (torch.arange(side, device=x_t.device) * 2 + 1 - side).abs() / (side + 1)
        weight = (ramp[:, None] * ramp).to(x_t.dtype)
        total, weights = torch.zeros_like(x_t), x_t.new_zeros(height, width)
        for part, (y, x) in zip(parts, places, strict=True):
            total[..., y : y + side, x : x + side] += part * weight
            weights[y : y + side, x : x + side] += weight
        return total / weights

    def to(self, device: torch.device | str) -> Self:
        """Move to ``device`` and return the denoiser."""
        self._inner.to(device)
        return self
