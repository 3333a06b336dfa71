"""Which cheap number goes along with natural robustness, over models.

Gu et al., arXiv 1904.10076: over models, accuracy and natural robustness go together, and some
synthetic distortions tell more about natural robustness than others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

LEAST = 5
"""Models from which a correlation is given."""


def correlation(pairs: Sequence[tuple[float | None, float | None]]) -> dict[str, Any]:
    """Return Pearson's and Spearman's correlation of pairs, one a model.

    Returns:
        ``{pearson, spearman, models}``; both are ``None``, with a ``reason``, for fewer than five
        models and where one side does not vary. There is no interval: models are no sample.
    """
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    found: dict[str, Any] = {"pearson": None, "spearman": None, "models": len(known)}
    if len(known) < LEAST:
        return {**found, "reason": f"{len(known)} models, {LEAST} are needed"}
    first, second = (np.array(side, dtype=np.float64) for side in zip(*known, strict=True))
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return {**found, "reason": "one side is the same for all models"}
    found["pearson"] = _pearson(first, second)
    found["spearman"] = _pearson(ranks(first), ranks(second))
    return found


def ranks(values: Any) -> Any:
    """Return ranks from 1, ties sharing the average.

    Example:
        >>> ranks([3.0, 1.0, 3.0]).tolist()
        [2.5, 1.0, 2.5]
    """
    found = np.asarray(values, dtype=np.float64)
    below = (found[:, None] > found[None, :]).sum(axis=1)
    equal = (found[:, None] == found[None, :]).sum(axis=1)
    return below + (equal + 1) / 2


def _pearson(first: Any, second: Any) -> float:
    a, b = first - first.mean(), second - second.mean()
    return float(np.clip((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()), -1.0, 1.0))
