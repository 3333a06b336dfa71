"""From source pixels to what a network takes: resize, crop, normalise; all differentiable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from vcr_models.resizing import resized

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor


def corners(height: int, width: int, size: int, crops: int) -> list[tuple[int, int, bool]]:
    """Return top, left and whether it is mirrored, of every crop.

    One: the centre. Three: both ends and the middle of the longer side, in mmaction2's order. Ten:
    the corners and the centre, each followed by its mirror image.

    Args:
        height: of the frame.
        width: of the frame.
        size: side of a crop.
        crops: 1, 3 or 10.

    Raises:
        ValueError: for another number.
    """
    down, right = height - size, width - size
    if crops == 1:
        return [(down // 2, right // 2, False)]
    if crops == 3:
        if right >= down:
            return [(down // 2, left, False) for left in (0, 2 * (right // 2), right // 2)]
        return [(top, right // 2, False) for top in (0, 2 * (down // 2), down // 2)]
    if crops == 10:
        down4, right4 = down // 4, right // 4
        places = [
            (0, 0),
            (0, 4 * right4),
            (4 * down4, 0),
            (4 * down4, 4 * right4),
            (2 * down4, 2 * right4),
        ]
        return [(top, left, flip) for top, left in places for flip in (False, True)]
    raise ValueError(f"crops must be 1, 3 or 10, not {crops}")


@dataclass(frozen=True, slots=True)
class Front:
    """What lies between the source frames and a network.

    Attributes:
        resize: short side, or height and width.
        size: side of a crop.
        crops: number of crops of a clip.
        mean: of each channel, in [0, 1].
        std: of each channel, in [0, 1].
    """

    resize: int | tuple[int, int]
    size: int
    crops: int
    mean: Sequence[float]
    std: Sequence[float]

    def resized(self, clips: Tensor) -> Tensor:
        """Return ``[N, T, 3, h, w]`` at the size from which crops are taken."""
        return resized(clips, self.resize)

    def views(self, clips: Tensor) -> Tensor:
        """Return normalised crops ``[N, V, T, 3, size, size]`` of clips ``[N, T, 3, H, W]``.

        Crops are an axis of their own, so that no network mixes them with time.
        """
        frames = self.resized(clips)
        size = self.size
        found = []
        for top, left, flip in corners(frames.shape[-2], frames.shape[-1], size, self.crops):
            crop = frames[..., top : top + size, left : left + size]
            found.append(crop.flip(-1) if flip else crop)
        mean, std = (
            torch.tensor(list(v), dtype=clips.dtype, device=clips.device).view(3, 1, 1)
            for v in (self.mean, self.std)
        )
        return (torch.stack(found, dim=1) - mean) / std
