"""How far apart two neighbours are between which a right prediction is lost.

Gu et al., arXiv 1904.10076: natural neighbours that a model fails on are almost never as close as
adversarial examples are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from vcr_core import outcomes
from vcr_core.robustness.replicates import Floats, entry, over

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from vcr_core.robustness.replicates import Resampler
    from vcr_core.summary import RunView
    from vcr_core.transformation import OutcomePair

CLOSE = 16 / 255
"""L∞ radius of the largest balls that attacks are usually allowed."""

_TOLERANCE = 1e-6
_COLOURS = 3


def describe_pairs(
    runs: Sequence[RunView],
    pairs: Sequence[Sequence[OutcomePair | None]],
    videos: Sequence[str],
    resampler: Resampler,
) -> dict[str, Any]:
    """Return distances of pairs of neighbours.

    Args:
        runs: one a step.
        pairs: their outcomes, by run and video.
        videos: ids of the videos.
        resampler: of the videos.

    Returns:
        ``brittle`` (right before, wrong after) and ``all``, each with ``count``, ``close`` (share
        within 16/255), and mean and standard deviation of L∞ (``linf_mean``, ``linf_std``) and of
        the root mean square of the difference (``rms_…``), as fractions of the pixel range.
    """
    sizes = [_distances(run) for run in runs]
    brittle, every = np.zeros((8, len(videos))), np.zeros((8, len(videos)))
    for found, known in zip(pairs, sizes, strict=True):
        for index, (pair, video) in enumerate(zip(found, videos, strict=True)):
            if pair is not None:
                part = _columns(*known.get(video, (None, None)))
                every[:, index] += part
                brittle[:, index] += (pair.before - pair.kept) * part
    return {
        name: _entries(resampler.sums(columns), len(videos))
        for name, columns in (("brittle", brittle), ("all", every))
    }


def _columns(linf: float | None, rms: float | None) -> NDArray[np.float64]:
    """Return what one pair adds: itself, then counts and moments of both distances."""
    near = [1.0, float(linf <= CLOSE + _TOLERANCE), linf, linf * linf] if linf is not None else []
    mean = [1.0, rms, rms * rms] if rms is not None else []
    return np.array([1.0, *(near or [0.0] * 4), *(mean or [0.0] * 3)])


def _entries(sums: NDArray[np.float64], videos: int) -> dict[str, Any]:
    pairs, known, close, linf, linf2, measured, rms, rms2 = sums
    count = float(pairs[0])
    why = "no such pair" if not count else "no distance was measured"
    n, m = round(float(known[0])), round(float(measured[0]))
    return {
        "count": round(count, 6),
        "close": entry(over(close, known), n, videos, reason=why),
        "linf_mean": entry(over(linf, known), n, videos, reason=why),
        "linf_std": entry(_deviation(linf, linf2, known), n, videos, reason=why),
        "rms_mean": entry(over(rms, measured), m, videos, reason=why),
        "rms_std": entry(_deviation(rms, rms2, measured), m, videos, reason=why),
    }


def _deviation(total: Floats, squares: Floats, count: Floats) -> Floats:
    centre = over(total, count)
    # Rounding may leave a tiny negative number where all values are equal.
    return np.sqrt(np.maximum(over(squares, count) - centre * centre, 0.0))


def _distances(run: RunView) -> dict[str, tuple[float | None, float | None]]:
    """Return L∞ and root mean square of the difference of each video, fractions of the range."""
    return {
        record["video"]: (_linf(record), _rms(record))
        for record in run.records
        if outcomes.is_evaluated(record)
    }


def _linf(record: Mapping[str, Any]) -> float | None:
    value = (record.get("perturbation") or {}).get("linf")
    return None if value is None else float(value)


def _rms(record: Mapping[str, Any]) -> float | None:
    mse = ((record.get("metrics") or {}).get("mse") or {}).get("value")
    if mse is not None:
        return math.sqrt(float(mse)) / 255
    norm = (record.get("perturbation") or {}).get("l2")
    facts = record.get("input") or {}
    size, indices = facts.get("size"), facts.get("indices")
    if norm is None or not size or not indices:
        return None
    return float(norm) / math.sqrt(len(indices) * _COLOURS * math.prod(size))
