"""Noise with few dimensions: cells of pixels, and of frames, that share one value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


class Cells:
    """A partition of a video into boxes of nearly equal size.

    Args:
        video: ``[B, T, C, H, W]``, for sizes and device.
        grid: cells along height and width; ``None`` for one per pixel. Never more than pixels.
        groups: cells along time; ``None`` for one per frame.
        colours: whether each channel has values of its own.

    Attributes:
        shape: ``(t, c, h, w)`` of one video's values.
    """

    def __init__(
        self,
        video: Tensor,
        grid: int | None = None,
        *,
        groups: int | None = None,
        colours: bool = True,
    ) -> None:
        _, frames, channels, height, width = video.shape
        self.shape = (
            min(groups or frames, frames),
            channels if colours else 1,
            min(grid or height, height),
            min(grid or width, width),
        )
        self._channels = channels
        self._index = [
            torch.arange(size, device=video.device) * cells // size
            for size, cells in zip((frames, height, width), (self.shape[0], *self.shape[2:]),
                                   strict=True)
        ]  # fmt: skip

    def spread(self, values: Tensor) -> Tensor:
        """Return ``[b, T, C, H, W]``: each of ``values [b, t, c, h, w]`` over its cell."""
        for axis, index in zip((1, 3, 4), self._index, strict=True):
            if len(index) != values.shape[axis]:
                values = values.index_select(axis, index)
        return values.expand(-1, -1, self._channels, -1, -1)
