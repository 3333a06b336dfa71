"""Which effect: accuracy over the classes, recall of each, and who is taken for whom."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from vcr_core.tamper_detection.judged import class_names
from vcr_core.tamper_detection.ledger import mean_of, over

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vcr_core.tamper_detection.judged import Judged
    from vcr_core.tamper_detection.ledger import Ledger, Sums

NO_ANSWER: Final = "no answer"


def tally_names(ledger: Ledger, rows: Sequence[Judged]) -> None:
    """Add how many videos of each class are named rightly."""
    for row in rows:
        ledger.add(f"class:{row.type}", row.source, 1.0)
        right = row.share(lambda corner, _, label=row.label: corner.get("pred") == label)  # type: ignore[misc]
        ledger.add(f"right:{row.type}", row.source, right)


def describe_names(ledger: Ledger, rows: Sequence[Judged], labels: Sequence[str]) -> dict[str, Any]:
    """Return how well the classes, the original among them, are named.

    Returns:
        ``accuracy`` over all videos, ``macro_recall`` (the mean over classes, which the many
        tampered videos do not outweigh), ``recall`` by class, ``truth`` and ``predicted`` (names of
        rows and columns), and ``confusion``: numbers of videos, rows by truth. Several draws count
        as parts of a video. A class that never occurs as the truth has no row.
    """
    names = class_names(rows, labels)
    truth = [names[index] for index in sorted({row.label for row in rows})]
    columns = [*names.values(), NO_ANSWER]
    confusion = {name: dict.fromkeys(columns, 0.0) for name in truth}
    for row in rows:
        for corner in row.corners:
            pred = corner.get("pred")
            named = NO_ANSWER if pred is None else names[pred]
            confusion[row.type][named] += 1 / len(row.corners)
    return {
        "accuracy": ledger.estimate(partial(_accuracy, truth), len(rows), "no video"),
        "macro_recall": ledger.estimate(partial(_macro, truth), len(rows), "no video"),
        "recall": {
            name: ledger.share(f"right:{name}", f"class:{name}", "no video") for name in truth
        },
        "truth": truth,
        "predicted": columns,
        "confusion": [[_count(confusion[name][column]) for column in columns] for name in truth],
    }


def _recall(name: str, s: Sums) -> float | None:
    return over(s[f"right:{name}"], s[f"class:{name}"])


def _accuracy(names: Sequence[str], s: Sums) -> float | None:
    right = sum(s[f"right:{name}"] for name in names)
    return over(right, sum(s[f"class:{name}"] for name in names))


def _macro(names: Sequence[str], s: Sums) -> float | None:
    return mean_of([_recall(name, s) for name in names])


def _count(value: float) -> int | float:
    return int(value) if value == int(value) else value
