"""What a transformation that nobody optimised does to predictions: kept, lost, gained.

Gu et al., "Using videos to evaluate image model robustness", arXiv 1904.10076, section 2. With the
accuracy ``A`` before and ``A'`` after, the share ``R`` of right predictions that stay right and the
share ``Q`` of wrong ones that become right: ``A' = R A + Q (1 - A)``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from vcr_core import outcomes
from vcr_core.stats import Term, bootstrap_mean, bootstrap_ratio, rate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vcr_core.stats import Estimate


def is_transformation(manifest: Mapping[str, Any]) -> bool:
    """Return whether the run's attack asks nothing of the model."""
    return any(
        part.get("role") == "attack" and part.get("access") == "none"
        for part in manifest.get("components") or ()
    )


def describe_transformation(
    records: Sequence[Mapping[str, Any]], *, defended: bool = False, seed: int = 0
) -> dict[str, Any]:
    """Return how predictions fare over the evaluated videos.

    Args:
        records: one per video.
        defended: of the defended model instead of the bare one.
        seed: of the bootstrap.

    Returns:
        ``accuracy_before``, ``accuracy_after``, ``retention`` (R), ``recovery`` (Q),
        ``consistency`` (the same label, right or wrong) and ``confidence_change`` (mean of the
        absolute change of the label's probability): each ``{value, n, ci95, method}``, ``value``
        ``None`` where nothing can be said, as of the accuracy before where the labels are the
        clean predictions. Several draws of a random defense count as parts.
    """
    pairs = [
        pair
        for record in records
        if outcomes.is_evaluated(record)
        for pair in [outcome_pair(record, defended=defended)]
        if pair is not None
    ]
    single = all(pair.whole for pair in pairs)
    known = defended or not any(map(outcomes.has_own_label, records))
    return {
        "accuracy_before": _share([(p.before, 1.0) for p in pairs if known], single, seed),
        "accuracy_after": _share([(p.after, 1.0) for p in pairs], single, seed),
        "retention": _share([(p.kept, p.before) for p in pairs], single, seed),
        "recovery": _share([(p.gained, 1 - p.before) for p in pairs], single, seed),
        "consistency": _share([(p.same, 1.0) for p in pairs], single, seed),
        "confidence_change": _entry(
            bootstrap_mean([p.moved for p in pairs if p.moved is not None], seed=seed)
        ),
    }


class OutcomePair:
    """One video before and after, as shares of its draws.

    Attributes:
        whole: whether there was one draw only, so that every share is 0 or 1.
        before: right before the transformation.
        after: right after it.
        kept: right before and after.
        gained: right after, not before.
        same: the same label before and after.
        moved: absolute change of the label's probability; ``None`` where it is not known.
    """

    def __init__(self, record: Mapping[str, Any], before: list[Any], after: list[Any]) -> None:
        both = [(b, a) for b in before for a in after] if len(before) != len(after) else list(
            zip(before, after, strict=True)
        )  # fmt: skip
        right = [
            (outcomes.is_right(record, b), outcomes.is_right(record, a), b, a) for b, a in both
        ]
        count = len(both)
        self.whole = count == 1
        self.before = sum(b for b, _, _, _ in right) / count
        self.after = sum(a for _, a, _, _ in right) / count
        self.kept = sum(b and a for b, a, _, _ in right) / count
        self.gained = sum(not b and a for b, a, _, _ in right) / count
        self.same = sum(b.get("pred") == a.get("pred") for _, _, b, a in right) / count
        gaps = [
            abs(a["p_label"] - b["p_label"])
            for _, _, b, a in right
            if a.get("p_label") is not None and b.get("p_label") is not None
        ]
        self.moved = math.fsum(gaps) / len(gaps) if gaps else None


def outcome_pair(record: Mapping[str, Any], *, defended: bool) -> OutcomePair | None:
    """Return how one video fared, or ``None`` if a side of it was not predicted."""
    before = outcomes.clean_corners(record, defended=defended)
    after = outcomes.attacked_corners(record, defended=defended)
    return OutcomePair(record, before, after) if before and after else None


def _share(parts: Sequence[tuple[float, float]], single: bool, seed: int) -> dict[str, Any]:
    """Return a ratio of sums: a proportion of videos where nothing was drawn."""
    if single:
        return _entry(rate(math.fsum(k for k, _ in parts), math.fsum(n for _, n in parts)))
    return _entry(bootstrap_ratio([Term(k, n) for k, n in parts], seed=seed))


def _entry(estimate: Estimate) -> dict[str, Any]:
    known = estimate.value is not None
    return {
        "value": estimate.value,
        "n": estimate.n,
        "ci95": [estimate.low, estimate.high] if known else None,
        "method": estimate.method,
    }
