"""How a detector answers: not at all, by the place of an option, too surely, and at what cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from vcr_core.tamper_detection.ledger import over

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from vcr_core.tamper_detection.judged import Judged
    from vcr_core.tamper_detection.ledger import Ledger, Sums

BINS: Final = 10


def tally_answers(ledger: Ledger, rows: Sequence[Judged]) -> None:
    """Add how many videos have no answer, and what is said with each option first."""
    for row in rows:
        ledger.add("videos", row.source, 1.0)
        ledger.add("undecided", row.source, row.share(lambda _, call: call is None))
        unnamed = row.share(lambda corner, _: corner.get("pred") is None)
        ledger.add("unnamed", row.source, unnamed)
        for corner, call in zip(row.corners, row.calls, strict=True):
            first = _first_option(corner)
            if first is not None and call is not None:
                ledger.add(f"said:{first}", row.source, float(call) / len(row.corners))
                ledger.add(f"asked:{first}", row.source, 1 / len(row.corners))


def describe_answers(ledger: Ledger) -> dict[str, Any]:
    """Return the shares of videos without an answer, and the bias towards the first option.

    ``position_bias`` is how much more often the answer is yes where that is the first option: 0
    for a model that minds what the options say, 1 for one that always takes the first.
    """
    asked = ledger.total("asked:yes") + ledger.total("asked:no")
    return {
        "undecided_rate": ledger.share("undecided", "videos", "no video"),
        "unnamed_rate": ledger.share("unnamed", "videos", "no video"),
        "position_bias": ledger.estimate(
            _bias,
            asked,
            "one order of the options only" if asked else "the detector offers no options",
        ),
    }


def describe_calibration(rows: Sequence[Judged]) -> dict[str, Any]:
    """Return expected calibration errors over ten bins of equal width.

    Returns:
        ``ece_score``: of a score that is a probability of tampering, which all of them must look
        like; ``ece_class``: of the probability of the predicted class. ``{value, n, bins}`` each,
        with a ``reason`` where there is no value.
    """
    scored = [
        (corner.get("score"), float(row.tampered), 1 / len(row.corners))
        for row in rows
        for corner in row.corners
    ]
    sure = [
        (corner.get("p_pred"), float(corner.get("pred") == row.label), 1 / len(row.corners))
        for row in rows
        for corner in row.corners
    ]
    return {
        "ece_score": _ece(scored, "scores are no probabilities in [0, 1]"),
        "ece_class": _ece(sure, "no probability of the predicted class"),
    }


def describe_cost(rows: Sequence[Judged]) -> dict[str, float | None]:
    """Return seconds and frames a video: means over the videos that have them."""
    return {
        "seconds_decode": _mean((row.record.get("cost") or {}).get("t_decode_s") for row in rows),
        "seconds_detect": _mean((row.record.get("cost") or {}).get("t_clean_s") for row in rows),
        "frames": _mean(
            len(indices)
            for row in rows
            if isinstance(indices := (row.record.get("input") or {}).get("indices"), list)
        ),
    }


def expected_calibration_error(items: Sequence[tuple[float, float, float]]) -> float:
    """Return the mean gap between a bin's mean probability and its share of positives.

    Args:
        items: probability in [0, 1], outcome 0 or 1, weight. Bins have equal width, and a
            probability on a border belongs to the bin above.

    Example:
        >>> expected_calibration_error([(0.8, 1.0, 1.0), (0.8, 0.0, 1.0)])
        0.30000000000000004
    """
    bins: list[list[tuple[float, float, float]]] = [[] for _ in range(BINS)]
    for item in items:
        bins[min(int(item[0] * BINS), BINS - 1)].append(item)
    total = sum(weight for _, _, weight in items)
    return sum(abs(sum(w * (p - hit) for p, hit, w in part)) for part in bins) / total


def _ece(items: Sequence[tuple[Any, float, float]], reason: str) -> dict[str, Any]:
    known = [(float(p), hit, w) for p, hit, w in items if isinstance(p, int | float)]
    if not known or not all(0 <= p <= 1 for p, _, _ in known):
        return {"value": None, "n": 0, "bins": BINS, "reason": reason}
    value = expected_calibration_error(known)
    return {"value": value, "n": round(sum(w for _, _, w in known)), "bins": BINS}


def _first_option(corner: Mapping[str, Any]) -> str | None:
    options = (corner.get("evidence") or {}).get("options")
    if not isinstance(options, list) or sorted(map(str, options)) != ["no", "yes"]:
        return None
    return str(options[0])


def _bias(s: Sums) -> float | None:
    with_yes, with_no = over(s["said:yes"], s["asked:yes"]), over(s["said:no"], s["asked:no"])
    return None if with_yes is None or with_no is None else with_yes - with_no


def _mean(values: Iterable[Any]) -> float | None:
    known = [float(value) for value in values if isinstance(value, int | float)]
    return sum(known) / len(known) if known else None
