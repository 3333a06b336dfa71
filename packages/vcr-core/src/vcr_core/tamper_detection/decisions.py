"""Tampered or not: the numbers of MVTamperBench, balanced ones, and ranking by score.

Agarwal et al., "MVTamperBench", arXiv 2412.19794, section 4.1, report accuracy over tampered videos
alone, which is recall here; their toolkit pools the originals with each effect.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from vcr_core.separation import Rule, Scores, separation
from vcr_core.tamper_detection.judged import ORIGINAL
from vcr_core.tamper_detection.ledger import entry, mean_of, over

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vcr_core.tamper_detection.judged import Judged
    from vcr_core.tamper_detection.ledger import Ledger, Sums

RANKINGS: Final[tuple[tuple[str, Rule], ...]] = (("auroc", "auroc"), ("tpr_at_5_fpr", "tpr"))


def tally_decisions(ledger: Ledger, rows: Sequence[Judged]) -> None:
    """Add how many videos of each type there are, and of how many it was said that …."""
    for row in rows:
        ledger.add(f"n:{row.type}", row.source, 1.0)
        ledger.add(f"yes:{row.type}", row.source, row.share(lambda _, call: call is True))
        ledger.add(f"no:{row.type}", row.source, row.share(lambda _, call: call is False))


def describe_decisions(ledger: Ledger, types: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the rates of each effect, pooled with the originals, and their means over effects.

    A video without an answer is wrong, and it is neither called tampered nor untouched.

    Returns:
        By effect, and ``macro``: ``accuracy``, ``precision``, ``recall``, ``f1`` and
        ``balanced_accuracy``; under ``original``: ``tnr`` and ``fpr``.
    """
    originals = ledger.total(f"n:{ORIGINAL}")
    found: dict[str, dict[str, Any]] = {}
    for kind in types:
        count = ledger.total(f"n:{kind}")
        found[kind] = {
            name: ledger.estimate(partial(rule, kind), _rests_on(name, count, originals), why)
            for name, (rule, why) in RATES.items()
        }
        found[kind]["recall"] = ledger.share(f"yes:{kind}", f"n:{kind}", "no tampered video")
    total = sum(ledger.total(f"n:{kind}") for kind in types)
    found["macro"] = {
        name: ledger.estimate(
            partial(_macro, rule, tuple(types)),
            _rests_on(name, total, originals),
            why if types else "no tampered video",
        )
        for name, (rule, why) in RATES.items()
    }
    found[ORIGINAL] = {
        "tnr": ledger.share(f"no:{ORIGINAL}", f"n:{ORIGINAL}", NO_ORIGINALS),
        "fpr": ledger.share(f"yes:{ORIGINAL}", f"n:{ORIGINAL}", NO_ORIGINALS),
    }
    return found


def describe_ranking(
    rows: Sequence[Judged], types: Sequence[str], sources: Sequence[str], seed: int
) -> dict[str, dict[str, Any]]:
    """Return AUROC and detection at 5 % false positives of each effect, and their means."""
    places = {source: place for place, source in enumerate(sources)}
    clean: list[list[float]] = [[] for _ in sources]
    by_type: dict[str, list[list[float]]] = {kind: [[] for _ in sources] for kind in types}
    for row in rows:
        into = by_type[row.type] if row.tampered else clean
        into[places[row.source]] += _scores(row)
    originals = sum(map(len, clean))
    separated = {
        kind: separation(
            [Scores(tuple(c), tuple(a)) for c, a in zip(clean, scored, strict=True)], seed=seed
        )
        for kind, scored in by_type.items()
    }
    counts = {kind: sum(map(len, scored)) for kind, scored in by_type.items()}
    side = "original" if not originals else "tampered video"
    found: dict[str, dict[str, Any]] = {kind: {} for kind in (*types, "macro")}
    for name, rule in RANKINGS:
        for kind, numbers in separated.items():
            count = originals + counts[kind]
            found[kind][name] = entry(*numbers[rule], count, f"no {side} has a score")
        values = [numbers[rule][0] for numbers in separated.values()]
        resampled = zip(*(numbers[rule][1] for numbers in separated.values()), strict=False)
        macro = [mean_of(parts) for parts in resampled]
        count = originals + sum(counts.values())
        why = "no value for every effect" if types else "no tampered video"
        found["macro"][name] = entry(mean_of(values), macro, count, why)
    return found


def _scores(row: Judged) -> list[float]:
    found = [corner.get("score") for corner in row.corners]
    return [float(s) for s in found if isinstance(s, int | float) and math.isfinite(s)]


def _rests_on(name: str, tampered: float, originals: float) -> float:
    return tampered if name == "recall" else tampered + originals


def _recall(kind: str, s: Sums) -> float | None:
    return over(s[f"yes:{kind}"], s[f"n:{kind}"])


def _accuracy(kind: str, s: Sums) -> float | None:
    if not (s[f"n:{kind}"] > 0 and s[f"n:{ORIGINAL}"] > 0):
        return None
    right = s[f"yes:{kind}"] + s[f"no:{ORIGINAL}"]
    return right / (s[f"n:{kind}"] + s[f"n:{ORIGINAL}"])


def _precision(kind: str, s: Sums) -> float | None:
    if not (s[f"n:{kind}"] > 0 and s[f"n:{ORIGINAL}"] > 0):
        return None
    return over(s[f"yes:{kind}"], s[f"yes:{kind}"] + s[f"yes:{ORIGINAL}"])


def _f1(kind: str, s: Sums) -> float | None:
    """Return 2 TP / (2 TP + FP + FN), the harmonic mean of precision and recall."""
    if not (s[f"n:{kind}"] > 0 and s[f"n:{ORIGINAL}"] > 0):
        return None
    hits = s[f"yes:{kind}"]
    return over(2 * hits, hits + s[f"yes:{ORIGINAL}"] + s[f"n:{kind}"])


def _balanced(kind: str, s: Sums) -> float | None:
    return mean_of([_recall(kind, s), _tnr(s)])


def _tnr(s: Sums) -> float | None:
    return over(s[f"no:{ORIGINAL}"], s[f"n:{ORIGINAL}"])


def _macro(
    rule: Callable[[str, Sums], float | None], kinds: Sequence[str], s: Sums
) -> float | None:
    return mean_of([rule(kind, s) for kind in kinds])


NO_ORIGINALS: Final = "no original video"
_NEEDS_BOTH: Final = "no original or no tampered video"

RATES: Final[dict[str, tuple[Callable[[str, Sums], float | None], str]]] = {
    "accuracy": (_accuracy, _NEEDS_BOTH),
    "precision": (_precision, "nothing was called tampered, or no original video"),
    "recall": (_recall, "no tampered video"),
    "f1": (_f1, _NEEDS_BOTH),
    "balanced_accuracy": (_balanced, _NEEDS_BOTH),
}
"""Rates of an effect with why they may have no value."""
