"""Does a class survive tampering the more of it the model sees? Per run, from records alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from vcr_core import outcomes
from vcr_core.stats import Term, bootstrap_ratio, rate
from vcr_core.transformation import OutcomePair, outcome_pair

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BINS: Final = 5

NO_OVERLAP: Final = "no video has so much of the segment among its sampled frames"
NONE_RIGHT: Final = "no right prediction before"


def overlap_curve(
    records: Sequence[Mapping[str, Any]], *, defended: bool = False, seed: int = 0
) -> list[dict[str, Any]] | None:
    """Return retention by the share of sampled frames that lie in the changed segment.

    Retention is the share of right predictions that stay right (``R`` of
    :mod:`vcr_core.transformation`). A model that sees nothing of a segment cannot be disturbed by
    what is in it, so a rate over all videos mixes robustness with luck in sampling.

    Args:
        records: one per video; those without ``transform.overlap`` are left out.
        defended: of the defended model instead of the bare one.
        seed: of the bootstrap, which is used where a random defense was drawn several times.

    Returns:
        Five bins of equal width, a border belongs to the bin above: ``low``, ``high``, ``videos``,
        ``overlap`` (their mean) and ``retention`` as ``{value, n, ci95, method}``, with a
        ``reason`` where there is no value. ``None`` if no record has an overlap.
    """
    bins: list[list[tuple[float, OutcomePair]]] = [[] for _ in range(BINS)]
    for record in records:
        overlap = (record.get("transform") or {}).get("overlap")
        if not outcomes.is_evaluated(record) or not isinstance(overlap, int | float):
            continue
        pair = outcome_pair(record, defended=defended)
        if pair is not None:
            bins[min(int(overlap * BINS), BINS - 1)].append((float(overlap), pair))
    if not any(bins):
        return None
    return [_bin(number, found, seed) for number, found in enumerate(bins)]


def _bin(number: int, found: Sequence[tuple[float, OutcomePair]], seed: int) -> dict[str, Any]:
    pairs = [pair for _, pair in found]
    kept, before = math.fsum(p.kept for p in pairs), math.fsum(p.before for p in pairs)
    if all(pair.whole for pair in pairs):
        estimate = rate(kept, before)
    else:
        estimate = bootstrap_ratio([Term(p.kept, p.before) for p in pairs], seed=seed)
    retention: dict[str, Any] = {
        "value": estimate.value,
        "n": estimate.n,
        "ci95": estimate.ci95,
        "method": estimate.method,
    }
    if estimate.value is None:
        retention["reason"] = NONE_RIGHT if found else NO_OVERLAP
    return {
        "low": number / BINS,
        "high": (number + 1) / BINS,
        "videos": len(found),
        "overlap": math.fsum(share for share, _ in found) / len(found) if found else None,
        "retention": retention,
    }
