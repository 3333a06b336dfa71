"""Sums over videos, and over resamples of them, for any number of columns at once.

A video is the unit: all neighbours, types, severities and models of a video are drawn together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from vcr_core.resampling import resampled_times
from vcr_core.stats import RESAMPLES, rate

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
"""``[1 + B]``: a number over the videos as they are, then over each of B resamples."""

FEW = 20
"""With fewer videos an interval is printed, and marked."""

_BLOCK = 250
_ZERO = 1e-12


class Resampler:
    """The same B resamples of the videos for everything that is computed on them.

    Args:
        videos: how many there are.
        seed: the same seed draws the same videos as :func:`vcr_core.stats.bootstrap_ratio`.
        resamples: B.
    """

    def __init__(self, videos: int, *, seed: int = 0, resamples: int = RESAMPLES) -> None:
        self.videos = videos
        self.resamples = resamples
        self._times = np.asarray(resampled_times(videos, resamples, seed), dtype=np.uint16)

    def sums(self, columns: NDArray[Any]) -> NDArray[np.float64]:
        """Return the sums of ``columns`` ``[M, V]`` as ``[M, 1 + B]``.

        Raises:
            ValueError: if there is not one value a video.
        """
        columns = np.asarray(columns, dtype=np.float64)
        if columns.ndim != 2 or columns.shape[1] != self.videos:
            raise ValueError(f"columns are {columns.shape}, there are {self.videos} videos")
        parts = [columns.sum(axis=1, keepdims=True)]
        # In blocks, so that the counts are small in memory and floats only while they are used.
        for start in range(0, self.resamples, _BLOCK):
            block = self._times[start : start + _BLOCK].astype(np.float64)
            parts.append(columns @ block.T)
        return np.concatenate(parts, axis=1)


def over(numerator: Floats, denominator: Floats) -> Floats:
    """Return a quotient, NaN where the denominator is 0."""
    result = np.full(np.broadcast(numerator, denominator).shape, np.nan)
    # A difference of two equal means is 1e-17 rather than 0.
    np.divide(numerator, denominator, out=result, where=np.abs(denominator) > _ZERO)
    return result


def entry(values: Floats, n: int, videos: int, *, reason: str = "") -> dict[str, Any]:
    """Return a number with its percentile interval as summaries have it.

    Args:
        values: ``[1 + B]``; NaN where a denominator is 0.
        n: how many videos, or pairs, the number rests on.
        videos: how many videos were resampled.
        reason: why there is no value, where there is none.

    Returns:
        ``{value, n, ci95, method}``, with ``dropped`` where resamples had no value, with
        ``few_videos`` where an interval rests on fewer than 20, and ``reason`` instead of a value.
    """
    point = float(values[0])
    if not np.isfinite(point):
        return missing(reason or "denominator is 0", n)
    drawn = values[1:][np.isfinite(values[1:])]
    low, high = np.quantile(drawn, [0.025, 0.975]) if len(drawn) else (point, point)
    found: dict[str, Any] = {
        "value": point,
        "n": n,
        "ci95": [float(low), float(high)],
        "method": "bootstrap",
    }
    if len(drawn) < len(values) - 1:
        found["dropped"] = len(values) - 1 - len(drawn)
    if videos < FEW:
        found["few_videos"] = True
    return found


def proportion(
    numerator: Floats, denominator: Floats, videos: int, *, whole: bool
) -> dict[str, Any]:
    """Return a proportion of videos: Wilson where outcomes are counts, else bootstrap."""
    n = round(float(denominator[0]))
    if not whole:
        return entry(over(numerator, denominator), n, videos)
    found = rate(round(float(numerator[0])), n)
    if found.value is None:
        return missing("denominator is 0")
    return {"value": found.value, "n": n, "ci95": found.ci95, "method": found.method}


def missing(reason: str, n: int = 0) -> dict[str, Any]:
    """Return a number that there is not, and why."""
    return {"value": None, "n": n, "ci95": None, "method": "bootstrap", "reason": reason}
