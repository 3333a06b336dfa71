"""How well a detector's scores tell attacked videos from clean ones, whatever its threshold."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from vcr_core import outcomes, stats
from vcr_core.separation import Rule, Scores, separation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_RULES: tuple[tuple[str, Rule], ...] = (("auroc", "auroc"), ("tpr_at_5_fpr", "tpr"))


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
        name + suffix: entry
        for suffix, videos in (("", every), ("_over_successes", won))
        for name, entry in _entries(videos, seed).items()
    }


def _entries(videos: Sequence[Scores], seed: int) -> dict[str, dict[str, Any]]:
    found = separation(videos, seed=seed)
    return {name: _entry(videos, *found[rule]) for name, rule in _RULES}


def _entry(
    videos: Sequence[Scores], value: float | None, drawn: Sequence[float | None]
) -> dict[str, Any]:
    n = sum(bool(video.attacked) for video in videos)
    clean = sum(bool(video.clean) for video in videos)
    entry: dict[str, Any] = {
        "value": value, "n": n, "n_clean": clean, "ci95": None, "method": "bootstrap",
    }  # fmt: skip
    if value is None:
        side = "clean" if not clean else "attacked"
        return {**entry, "reason": f"no {side} video has a score"}
    known = [x for x in drawn if x is not None]
    return {**entry, "ci95": list(stats.percentiles(known, value))}


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
