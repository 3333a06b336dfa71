"""Resizing frames as the sources of published classifiers do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor


def resized(clips: Tensor, to: int | tuple[int, int]) -> Tensor:
    """Return clips at another size: bilinear, without antialiasing, differentiable.

    Args:
        clips: ``[N, T, C, H, W]``; returned as they are where they have the size.
        to: length of the short side, the other one in proportion, or height and width.
    """
    height, width = clips.shape[-2:]
    if isinstance(to, int):
        short = min(height, width)
        # Integer arithmetic, so that odd sizes do not depend on floating-point rounding.
        to = (
            max(to, (2 * height * to + short) // (2 * short)),
            max(to, (2 * width * to + short) // (2 * short)),
        )
    if (height, width) == tuple(to):
        return clips
    flat = functional.interpolate(
        clips.reshape(-1, *clips.shape[2:]),
        to,
        mode="bilinear",
        align_corners=False,
        antialias=False,
    )
    return flat.view(*clips.shape[:3], *flat.shape[-2:])
