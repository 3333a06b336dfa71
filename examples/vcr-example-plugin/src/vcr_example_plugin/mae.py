"""Mean absolute difference of two videos."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcr_core import Reading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor
    from vcr_core import ClipInfo


class Mae:
    """Mean of |test - reference| over all values; a metric without parameters."""

    def measure(self, reference: Tensor, test: Tensor, info: ClipInfo) -> Mapping[str, Reading]:
        """Return the value, and one per frame.

        Args:
            reference: `[T, C, H, W]`, float32 in [0, 1].
            test: the same shape.
            info: not used.
        """
        frames = (test - reference).abs().double().flatten(1).mean(dim=1).tolist()
        return {"example-mae": Reading(sum(frames) / len(frames), per_frame=tuple(frames))}
