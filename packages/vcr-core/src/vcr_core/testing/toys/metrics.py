"""Two metrics: one that is always defined and one that is not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from vcr_core.protocols import Reading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from vcr_core.protocols import ClipInfo


class MeanDifference:
    """Mean absolute difference in 8-bit levels."""

    def measure(self, reference: Tensor, test: Tensor, info: ClipInfo) -> Mapping[str, float]:
        """Return ``toy-difference`` of clips ``[T, C, H, W]``."""
        return {"toy-difference": 255 * float((reference - test).abs().mean())}


class LogError:
    """Minus the logarithm of the squared error; missing for identical clips."""

    def measure(self, reference: Tensor, test: Tensor, info: ClipInfo) -> Mapping[str, Reading]:
        """Return ``toy-log-error`` of clips ``[T, C, H, W]``."""
        error = float((reference.double() - test.double()).square().mean())
        if error == 0:
            return {"toy-log-error": Reading(None, "identical")}
        return {"toy-log-error": Reading(-math.log10(error))}
