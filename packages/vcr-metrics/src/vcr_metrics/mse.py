"""Mean squared error in squared 8-bit levels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import Reading

from vcr_metrics.levels import frame_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor
    from vcr_core.protocols import ClipInfo


@torch.no_grad()
def frame_mse(reference: Tensor, test: Tensor) -> list[float]:
    """Return the mean squared error of each frame, in squared levels of 0..255.

    Exact: the errors are integers, and their sum stays below 2**53.

    Args:
        reference: ``[T, C, H, W]``, float in [0, 1] or uint8.
        test: the same shape, dtype and device.

    Raises:
        ValueError: see :func:`vcr_metrics.levels.frame_pairs`.
    """
    squared = [
        (one - other).square_().flatten(1).sum(1) for one, other in frame_pairs(reference, test)
    ]
    values: list[float] = (torch.cat(squared) / reference[0].numel()).tolist()
    return values


class Mse:
    """Mean squared error over all elements of all frames, in squared levels (0..255 scale).

    The unit of the tables in the VCR-Bench paper; ``metrics.md`` calls it MSE per video.

    Example:
        >>> from vcr_core.protocols import ClipInfo
        >>> black = torch.zeros(2, 3, 8, 8)
        >>> Mse().measure(black, black + 4 / 255, ClipInfo())["mse"].value
        16.0
    """

    def measure(self, reference: Tensor, test: Tensor, info: ClipInfo) -> Mapping[str, Reading]:
        """Return ``{"mse": …}`` with one value a frame.

        Args:
            reference: ``[T, C, H, W]``, float32 in [0, 1] or uint8.
            test: the same shape, dtype and device.
            info: not used.

        Raises:
            ValueError: for videos that do not match, or values outside the range.
        """
        frames = frame_mse(reference, test)
        return {"mse": Reading(sum(frames) / len(frames), per_frame=tuple(frames))}
