"""Non-local means of frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn.functional import avg_pool2d, pad

if TYPE_CHECKING:
    from torch import Tensor


def non_local_means(frames: Tensor, *, window: int, patch: int, strength: float) -> Tensor:
    """Return frames whose pixels are means of the pixels with similar surroundings.

    Buades, Coll, Morel, "A non-local algorithm for image denoising", CVPR 2005: the weight of
    pixel ``q`` for pixel ``p`` is ``exp(-d(p, q) / strength²)``, with ``d`` the mean squared
    difference of the patches around them over all channels. Pixels outside of the frame mirror it.

    Args:
        frames: ``[N, C, H, W]`` in [0, 1].
        window: side of the square in which ``q`` lies, odd.
        patch: side of a patch, odd.
        strength: the filter parameter ``h``, in units of the pixel range.
    """
    height, width = frames.shape[-2:]
    reach = min(window // 2, height - 1, width - 1)
    half = patch // 2
    around = pad(frames, [reach] * 4, mode="reflect")
    total = torch.zeros_like(frames)
    weights = frames.new_zeros(len(frames), 1, height, width)
    for y in range(2 * reach + 1):
        for x in range(2 * reach + 1):
            moved = around[..., y : y + height, x : x + width]
            squared = (moved - frames).square_().mean(dim=1, keepdim=True)
            # Patches are cut off at the border, alike for p and q.
            distance = avg_pool2d(squared, patch, stride=1, padding=half, count_include_pad=False)
            weight = distance.div_(-(strength**2)).exp_()
            total += weight * moved
            weights += weight
    return total / weights
