"""Where the blocks of each frame were in the frame before, by exhaustive block matching."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

if TYPE_CHECKING:
    from torch import Tensor


def displacements(video: Tensor, block: int, reach: int) -> Tensor:
    """Return ``[T - 1, 2, H, W]`` int64: rows and columns from each pixel to where it was before.

    The displacement of a block is the one with the least mean absolute difference of brightness to
    the frame before; of equally good ones, the shortest.

    Args:
        video: ``[T, C, H, W]``.
        block: side of a block in pixels; the last ones are cut off at the border.
        reach: largest displacement along either axis.
    """
    bright = video.mean(dim=1, keepdim=True)
    before, now = bright[:-1], bright[1:]
    count, _, height, width = now.shape
    padded = F.pad(before, (reach,) * 4, mode="replicate")
    steps = range(-reach, reach + 1)
    ways = sorted(((y, x) for y in steps for x in steps), key=lambda w: (w[0] ** 2 + w[1] ** 2, w))
    best = now.new_full((count, 1, -(-height // block), -(-width // block)), float("inf"))
    chosen = torch.zeros_like(best, dtype=torch.int64)
    for number, (y, x) in enumerate(ways):
        there = padded[..., reach + y : reach + y + height, reach + x : reach + x + width]
        # Blocks at the border average over the pixels that they have.
        cost = F.avg_pool2d((there - now).abs(), block, ceil_mode=True)
        better = cost < best - 1e-6
        best, chosen = cost.where(better, best), chosen.masked_fill(better, number)
    fine = chosen.repeat_interleave(block, -2).repeat_interleave(block, -1)
    table = torch.tensor(ways, device=video.device)
    return table[fine[:, 0, :height, :width]].permute(0, 3, 1, 2)


def origins(video: Tensor, block: int, reach: int) -> Tensor:
    """Return ``[T, H, W]`` int64: which pixel of frame 0, flattened, each pixel goes back to."""
    frames, _, height, width = video.shape
    rows = torch.arange(height, device=video.device).view(-1, 1)
    columns = torch.arange(width, device=video.device)
    found = [(rows * width + columns)]
    if frames > 1:
        for down, across in displacements(video, block, reach):
            source = (rows + down).clamp(0, height - 1) * width
            source = source + (columns + across).clamp(0, width - 1)
            found.append(found[-1].flatten()[source])
    return torch.stack(found)
