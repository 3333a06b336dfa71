"""How well a detector's scores tell attacked videos from clean ones, whatever its threshold."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from itertools import groupby, repeat
from typing import TYPE_CHECKING, Any, TypeAlias

from vcr_core import outcomes, stats

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MAX_WORK = 4_000_000
"""Scores times resamples: with very many videos fewer resamples do, and take no longer."""

LEAST_RESAMPLES = 200

FALSE_POSITIVES = 0.05


@dataclass(frozen=True, slots=True)
class Scores:
    """One video's scores, a draw each; empty where the video is not in that class.

    Attributes:
        clean: of the clean video.
        attacked: of the attacked one.
    """

    clean: tuple[float, ...]
    attacked: tuple[float, ...]


def describe_detection(
    records: Sequence[Mapping[str, Any]], *, seed: int = 0
) -> dict[str, Any] | None:
    """Return AUROC and detection at 5 % false positives; ``None`` without a detector.

    Clean videos are negatives and attacked ones (status ``ok``) positives. Draws of a random
    detector share the weight of their video.

    Returns:
        ``auroc`` and ``tpr_at_5_fpr``, over all attacked videos and, with the suffix
        ``_over_successes``, over those where the attack succeeded: each
        ``{value, n, n_clean, ci95, method}``, with a ``reason`` where there is no value.
    """
    corners = [(r, outcomes.clean_corners(r, defended=True)) for r in records]
    if not any("score" in corner for _, found in corners for corner in found):
        return None
    every = [_scores(record, won_only=False) for record in records]
    won = [_scores(record, won_only=True) for record in records]
    return {
        name + suffix: _entry(rule, videos, seed)
        for suffix, videos in (("", every), ("_over_successes", won))
        for name, rule in (("auroc", _auroc), ("tpr_at_5_fpr", _tpr))
    }


def auroc(videos: Sequence[Scores]) -> float | None:
    """Return the probability that an attacked video scores above a clean one, ties counting half.

    Example:
        >>> auroc([Scores((0.1,), (0.9,)), Scores((0.3,), (0.2,))])
        0.75
    """
    return _auroc(_ordered(videos), [1] * len(videos))


def tpr_at_fpr(videos: Sequence[Scores], fpr: float = FALSE_POSITIVES) -> float | None:
    """Return the share of attacked videos above the lowest threshold that rejects few clean ones.

    A score is rejected if it is greater than the threshold; at most ``fpr`` of the clean videos
    may be.
    """
    return _tpr(_ordered(videos), [1] * len(videos), fpr)


_Item: TypeAlias = tuple[float, bool, int, float]
"""Score, whether attacked, number of the video, weight within the video."""
_Groups: TypeAlias = list[list[_Item]]
_Rule: TypeAlias = "Callable[[_Groups, Sequence[int]], float | None]"


def _ordered(videos: Sequence[Scores]) -> _Groups:
    """Return items grouped by equal score, rising."""
    items: list[_Item] = []
    for number, video in enumerate(videos):
        for attacked, scores in ((False, video.clean), (True, video.attacked)):
            items += [(score, attacked, number, 1 / len(scores)) for score in scores]
    items.sort(key=lambda item: item[0])
    return [list(group) for _, group in groupby(items, key=lambda item: item[0])]


def _weights(group: Sequence[_Item], times: Sequence[int]) -> tuple[float, float]:
    clean = attacked = 0.0
    for _, is_attacked, number, weight in group:
        if is_attacked:
            attacked += weight * times[number]
        else:
            clean += weight * times[number]
    return clean, attacked


def _auroc(groups: _Groups, times: Sequence[int]) -> float | None:
    below = area = positives = 0.0
    for group in groups:
        clean, attacked = _weights(group, times)
        area += attacked * (below + clean / 2)
        below += clean
        positives += attacked
    return area / (below * positives) if below > 0 and positives > 0 else None


def _tpr(groups: _Groups, times: Sequence[int], fpr: float = FALSE_POSITIVES) -> float | None:
    parts = [_weights(group, times) for group in groups]
    negatives = math.fsum(clean for clean, _ in parts)
    positives = math.fsum(attacked for _, attacked in parts)
    if not (negatives > 0 and positives > 0):
        return None
    false = true = 0.0
    for clean, attacked in reversed(parts):
        # Sums of thirds must not cross the limit by a rounding error.
        if false + clean > fpr * negatives + 1e-9:
            break
        false += clean
        true += attacked
    return min(1.0, true / positives)


def _entry(rule: _Rule, videos: Sequence[Scores], seed: int) -> dict[str, Any]:
    n = sum(bool(video.attacked) for video in videos)
    clean = sum(bool(video.clean) for video in videos)
    groups = _ordered(videos)
    value = rule(groups, [1] * len(videos))
    entry: dict[str, Any] = {
        "value": value, "n": n, "n_clean": clean, "ci95": None, "method": "bootstrap",
    }  # fmt: skip
    if value is None:
        side = "clean" if not clean else "attacked"
        return {**entry, "reason": f"no {side} video has a score"}
    drawn = _resampled(rule, groups, len(videos), seed)
    return {**entry, "ci95": list(stats.percentiles(drawn, value))}


def _resampled(rule: _Rule, groups: _Groups, videos: int, seed: int) -> list[float]:
    """Return the values of sets of videos drawn from these; a video brings all its scores."""
    # A private generator: the ambient one belongs to others.
    uniform = random.Random(seed).random  # noqa: S311
    drawn = []
    resamples = min(stats.RESAMPLES, max(LEAST_RESAMPLES, MAX_WORK // sum(map(len, groups))))
    for _ in range(resamples):
        times = [0] * videos
        for _video in repeat(None, videos):
            times[int(uniform() * videos)] += 1
        value = rule(groups, times)
        if value is not None:
            drawn.append(value)
    return drawn


def _scores(record: Mapping[str, Any], *, won_only: bool) -> Scores:
    counts = record.get("status") == "ok" and (not won_only or outcomes.succeeded(record))
    attacked = outcomes.attacked_corners(record, defended=True) if counts else []
    return Scores(
        _finite(outcomes.clean_corners(record, defended=True)),
        _finite(attacked),
    )


def _finite(corners: Sequence[Mapping[str, Any]]) -> tuple[float, ...]:
    found = (corner.get("score") for corner in corners)
    return tuple(
        float(score) for score in found if isinstance(score, int | float) and math.isfinite(score)
    )
