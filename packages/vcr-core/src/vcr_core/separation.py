"""How well scores tell two groups of videos apart, on the videos as they are and resampled.

The same numbers with numpy, which is much faster, and without.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from vcr_core import stats
from vcr_core.resampling import resampled_times

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

MAX_WORK = 4_000_000
"""Scores times resamples: with very many videos fewer resamples do, and take no longer."""

LEAST_RESAMPLES = 200

FALSE_POSITIVES = 0.05

Rule: TypeAlias = Literal["auroc", "tpr"]
RULES: tuple[Rule, ...] = ("auroc", "tpr")

_SLACK = 1e-9
"""The limit of false positives is a product with 0.05 and must not be missed by rounding."""

_BLOCK = 2_000_000
"""Numbers in one matrix of the vectorised computation."""


@dataclass(frozen=True, slots=True)
class Scores:
    """One video's scores, a draw each; empty where the video is not in that class.

    Attributes:
        clean: of the clean video.
        attacked: of the attacked one.
    """

    clean: tuple[float, ...]
    attacked: tuple[float, ...]


def auroc(videos: Sequence[Scores]) -> float | None:
    """Return the probability that an attacked video scores above a clean one, ties counting half.

    Example:
        >>> auroc([Scores((0.1,), (0.9,)), Scores((0.3,), (0.2,))])
        0.75
    """
    return _value(_ordered(videos), [1] * len(videos), "auroc", FALSE_POSITIVES)


def tpr_at_fpr(videos: Sequence[Scores], fpr: float = FALSE_POSITIVES) -> float | None:
    """Return the share of attacked videos above the lowest threshold that rejects few clean ones.

    A score is rejected if it is greater than the threshold; at most ``fpr`` of the clean videos
    may be.
    """
    return _value(_ordered(videos), [1] * len(videos), "tpr", fpr)


def separation(
    videos: Sequence[Scores], *, seed: int = 0
) -> dict[Rule, tuple[float | None, list[float | None]]]:
    """Return both values, ``tpr`` at 5 % false positives, and those over resampled videos.

    Args:
        videos: what is resampled, with all scores of each.
        seed: the same seed draws the same videos for the same number of them.

    Returns:
        For each rule the value, ``None`` if a group has no score, and one value for every
        resample, ``None`` where a group is empty there; no resamples without a value.
    """
    groups = _ordered(videos)
    once = [1] * len(videos)
    values = {rule: _value(groups, once, rule, FALSE_POSITIVES) for rule in RULES}
    if None in values.values():
        return {rule: (None, []) for rule in RULES}
    resamples = resample_count(sum(map(len, groups)))
    times = resampled_times(len(videos), resamples, seed)
    drawn: dict[Rule, list[float | None]] = {rule: [] for rule in RULES}
    try:
        import numpy as np
    except ImportError:
        for rule in RULES:
            drawn[rule] = [_value(groups, row, rule, FALSE_POSITIVES) for row in times]
        return {rule: (values[rule], drawn[rule]) for rule in RULES}
    rows = max(1, _BLOCK // sum(map(len, groups)))
    for start in range(0, resamples, rows):
        clean, attacked = _matrices(groups, np.asarray(times[start : start + rows]))
        drawn["auroc"] += _known(_aurocs(clean, attacked))
        drawn["tpr"] += _known(_tprs(clean, attacked))
    return {rule: (values[rule], drawn[rule]) for rule in RULES}


def resample_count(scores: int) -> int:
    """Return how many resamples are made of so many scores."""
    return min(stats.RESAMPLES, max(LEAST_RESAMPLES, MAX_WORK // max(1, scores)))


_Item: TypeAlias = tuple[float, bool, int, int]
"""Score, whether attacked, number of the video, weight."""
_Groups: TypeAlias = list[list[_Item]]


def _ordered(videos: Sequence[Scores]) -> _Groups:
    """Return items grouped by equal score, rising; draws share the weight of their video.

    Weights are whole numbers, so that sums are exact in any order.
    """
    sides = [side for video in videos for side in (video.clean, video.attacked) if side]
    unit = math.lcm(*(len(side) for side in sides))
    items: list[_Item] = []
    for number, video in enumerate(videos):
        for attacked, scores in ((False, video.clean), (True, video.attacked)):
            items += [(score, attacked, number, unit // len(scores)) for score in scores]
    items.sort(key=lambda item: item[0])
    return [list(group) for _, group in groupby(items, key=lambda item: item[0])]


def _value(groups: _Groups, times: Sequence[int], rule: Rule, fpr: float) -> float | None:
    parts = [_weights(group, times) for group in groups]
    negatives = sum(clean for clean, _ in parts)
    positives = sum(attacked for _, attacked in parts)
    if not (negatives and positives):
        return None
    if rule == "auroc":
        below, area = 0, 0.0
        for clean, attacked in parts:
            area += attacked * (below + clean / 2)
            below += clean
        return area / (negatives * positives)
    false = true = 0
    for clean, attacked in reversed(parts):
        if false + clean > fpr * negatives + _SLACK:
            break
        false += clean
        true += attacked
    return true / positives


def _weights(group: Sequence[_Item], times: Sequence[int]) -> tuple[int, int]:
    clean = attacked = 0
    for _, is_attacked, number, weight in group:
        if is_attacked:
            attacked += weight * int(times[number])
        else:
            clean += weight * int(times[number])
    return clean, attacked


def _matrices(
    groups: _Groups, times: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weight of clean and of attacked scores, ``[resamples, groups]`` each."""
    import numpy as np

    items = [item for group in groups for item in group]
    weights = np.array([item[3] for item in items], dtype=np.float64)
    attacked = np.array([item[1] for item in items])
    starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
    drawn = times[:, [item[2] for item in items]] * weights
    if len(groups) == len(items):
        return np.where(attacked, 0.0, drawn), np.where(attacked, drawn, 0.0)
    return (
        np.add.reduceat(np.where(attacked, 0.0, drawn), starts, axis=1),
        np.add.reduceat(np.where(attacked, drawn, 0.0), starts, axis=1),
    )


def _aurocs(clean: NDArray[np.float64], attacked: NDArray[np.float64]) -> NDArray[np.float64]:
    below = clean.cumsum(axis=1) - clean
    area = (attacked * (below + clean / 2)).sum(axis=1)
    return _over(area, clean.sum(axis=1) * attacked.sum(axis=1))


def _tprs(clean: NDArray[np.float64], attacked: NDArray[np.float64]) -> NDArray[np.float64]:
    negatives = clean.sum(axis=1)
    false = clean[:, ::-1].cumsum(axis=1)
    kept = false <= (FALSE_POSITIVES * negatives + _SLACK)[:, None]
    positives = attacked.sum(axis=1)
    rates = _over((attacked[:, ::-1] * kept).sum(axis=1), positives)
    rates[negatives == 0] = math.nan
    return rates


def _known(values: NDArray[np.float64]) -> list[float | None]:
    return [None if math.isnan(value) else value for value in values.tolist()]


def _over(top: NDArray[np.float64], bottom: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    quotient = np.full(top.shape, math.nan)
    np.divide(top, bottom, out=quotient, where=bottom > 0)
    return quotient
