"""Every video of every run as compact data that the page's script turns into tables on demand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from vcr_core import definitions, outcomes, stats
from vcr_core.reporters.rows import NONE, Row, metric_names
from vcr_core.reporters.wording import metric_title
from vcr_core.tables import metric_value

if TYPE_CHECKING:
    from vcr_core.summary import RunView

Data: TypeAlias = dict[str, Any]

OUTCOMES = (
    "held", "fell", "mixed", "abstained", "wrong before", "right", "wrong", "error", "skipped",
)  # fmt: skip
"""What became of a video, in the order in which the page sorts."""

OUTCOME_TEXT = {
    "held": "right before and after",
    "fell": "right before, wrong after",
    "mixed": "differs between draws of the defense",
    "abstained": "right before, no prediction after",
    "wrong before": "wrong before the attack",
}

_COSTS = ("forwards", "queries_to_first_success", "t_attack_s")


def drill_down(ordered: Sequence[tuple[Row, RunView]]) -> Data:
    """Return all videos of all runs as columns of numbers.

    Returns:
        ``outcomes``: names by code. ``datasets``: names of classes and ids of videos, which the
        runs refer to by position; ids are sorted, so positions sort like ids. ``metrics``: names
        and titles. ``runs``: one mapping of equally long columns each, see :func:`_run`.
    """
    names = metric_names([row for row, _ in ordered])
    datasets: dict[tuple[str, tuple[str, ...]], set[str]] = {}
    for row, run in ordered:
        videos = datasets.setdefault((row.dataset, _labels(run)), set())
        videos.update(str(record.get("video")) for record in run.records)
    places = {key: number for number, key in enumerate(datasets)}
    positions = [
        {video: i for i, video in enumerate(sorted(videos))} for videos in datasets.values()
    ]
    runs = []
    for row, run in ordered:
        place = places[(row.dataset, _labels(run))]
        runs.append({"dataset": place, **_run(row, run, positions[place], names)})
    return {
        "outcomes": OUTCOMES,
        "meanings": OUTCOME_TEXT,
        "datasets": [
            {"name": name, "labels": labels, "videos": list(found)}
            for (name, labels), found in zip(datasets, positions, strict=True)
        ],
        "metrics": [[name, metric_title(name)] for name in names],
        "runs": runs,
    }


def outcome_of(record: Mapping[str, Any], *, defended: bool, attacked: bool) -> str:
    """Return one of :data:`OUTCOMES`: how a video fared in the run's headline pair."""
    status = record.get("status")
    if status not in outcomes.EVALUATED:
        return "error" if status == "error" else "skipped"
    before = outcomes.clean_right(record, defended=defended)
    if not attacked:
        corners = outcomes.clean_corners(record, defended=defended)
        if before == 0 and corners and all(corner.get("abstained") for corner in corners):
            return "abstained"
        return {None: "skipped", 0.0: "wrong", 1.0: "right"}.get(before, "mixed")
    after = outcomes.stays_right(record, defended=defended)
    lost = outcomes.is_lost(record, defended=defended)
    if before is None or after is None:
        return "skipped"
    if before == 0:
        return "wrong before"
    if after == 1:
        return "held"
    if lost == 1:
        return "fell"
    return "abstained" if (before, after, lost) == (1, 0, 0) else "mixed"


def _run(row: Row, run: RunView, positions: Mapping[str, int], names: Sequence[str]) -> Data:
    """Return one run.

    ``video label outcome target`` are positions and codes. ``clean attacked clean_defended
    attacked_defended`` hold ``[pred, p_pred, p_label, draws that are right, draws]`` (the first
    draw's prediction), ``costs`` and ``metrics`` numbers by name, ``notes`` texts by row. Columns
    without any value are left out.
    """
    defended, attacked = row.headline_defended, row.attack != NONE
    records = run.records
    code = {name: i for i, name in enumerate(OUTCOMES)}
    columns: Data = {
        "video": [positions[str(record.get("video"))] for record in records],
        "label": [record.get("label") for record in records],
        "outcome": [
            code[outcome_of(record, defended=defended, attacked=attacked)] for record in records
        ],
        "target": [record.get("target") for record in records],
    }
    for name, corners, of_defense in (
        ("clean", outcomes.clean_corners, False),
        ("attacked", outcomes.attacked_corners, False),
        ("clean_defended", outcomes.clean_corners, True),
        ("attacked_defended", outcomes.attacked_corners, True),
    ):
        if attacked or name.startswith("clean"):
            columns[name] = [_corner(r, corners(r, defended=of_defense)) for r in records]
    costs = {name: [_cost(record, name) for record in records] for name in _COSTS if attacked}
    metrics = {
        name: [_short(metric_value(record, name)) for record in records]
        for name in names
        if name in row.metrics
    }
    return {
        "is_defended": defended,
        "is_attacked": attacked,
        **_filled(columns),
        "costs": _filled(costs),
        "metrics": _filled(metrics),
        "notes": {str(i): text for i, record in enumerate(records) if (text := _notes(record))},
        "classes": _classes(run, defended),
    }


def _filled(columns: Mapping[str, list[Any]]) -> Data:
    return {
        name: values
        for name, values in columns.items()
        if any(value is not None for value in values)
    }


def _corner(record: Mapping[str, Any], corners: Sequence[Mapping[str, Any]]) -> list[Any] | None:
    if not corners:
        return None
    first = corners[0]
    values = [first.get("pred"), _probability(first, "p_pred"), _probability(first, "p_label")]
    if len(corners) > 1:
        values += [sum(outcomes.is_right(record, c) for c in corners), len(corners)]
    return values


def _probability(corner: Mapping[str, Any], name: str) -> float | None:
    value = corner.get(name)
    return round(value, 3) if isinstance(value, int | float) else None


def _cost(record: Mapping[str, Any], name: str) -> float | None:
    return _short((record.get("cost") or {}).get(name)) if record.get("status") == "ok" else None


def _short(value: Any) -> float | None:
    """Return a number with four digits, which is all that the page shows."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, int) else float(f"{value:.4g}")


def _notes(record: Mapping[str, Any]) -> list[str]:
    """Return what else there is to say about a video: the error, flags, remarks."""
    texts = []
    if record.get("status") == "error":
        error = record.get("error") or {}
        where = f"{error.get('type') or 'error'} while in {error.get('stage') or '?'}"
        texts.append(f"{where}: {error.get('message') or 'no message'}")
    texts += [f"flag: {flag}" for flag in record.get("flags") or ()]
    notes = record.get("notes") or ()
    listed = notes.items() if isinstance(notes, Mapping) else ((None, note) for note in notes)
    return texts + [f"{key}: {text}" if key else str(text) for key, text in listed]


def _classes(run: RunView, defended: bool) -> list[list[Any]]:
    """Return ``[label, n, right before, its interval, robust, its interval, taken for, times]``.

    The rates are the headline's; ``taken for`` is the most frequent wrong label after the attack,
    or before it where there is none. Intervals are Wilson's, none where draws make parts.
    """
    labels = {str(record["video"]): record.get("label") for record in run.records}
    names = (run.summary.get("headline") or {}).get("definitions") or {}
    sums: dict[Any, Data] = {}
    for key in ("clean_accuracy", "robust_accuracy"):
        for video, term in _terms(names.get(key), run.records).items():
            entry = sums.setdefault(labels[video], {})
            entry.setdefault(key, []).append(term.num)
    wrong = _wrong_labels(run.records, defended)
    found = []
    for label in sorted(label for label in sums if isinstance(label, int)):
        before, after = (sums[label].get(k) for k in ("clean_accuracy", "robust_accuracy"))
        taken = wrong[label].most_common(1)[0] if label in wrong else (None, 0)
        found.append([label, len(before or after or ()), *_share(before), *_share(after), *taken])
    return found


def _terms(name: Any, records: Sequence[Mapping[str, Any]]) -> Mapping[str, stats.Term]:
    return definitions.terms(name, records) if isinstance(name, str) else {}


def _wrong_labels(records: Sequence[Mapping[str, Any]], defended: bool) -> dict[Any, Counter[int]]:
    wrong: dict[Any, Counter[int]] = {}
    for record in records:
        for pick in _LAST_FIRST:
            corners = pick(record, defended=defended)
            if corners:
                if outcomes.is_misled(record, corners[0]):
                    wrong.setdefault(record.get("label"), Counter())[corners[0]["pred"]] += 1
                break
    return wrong


_LAST_FIRST: tuple[Callable[..., list[Mapping[str, Any]]], ...] = (
    outcomes.attacked_corners,
    outcomes.clean_corners,
)


def _share(values: Sequence[float] | None) -> list[Any]:
    """Return how many hold, and the interval of their share."""
    if not values:
        return [None, None]
    total = sum(values)
    if any(value not in (0, 1) for value in values):
        return [round(total, 2), None]
    return [int(total), [round(end, 4) for end in stats.wilson(total, len(values))]]


def _labels(run: RunView) -> tuple[str, ...]:
    return tuple(map(str, (run.manifest.get("dataset") or {}).get("labels") or ()))
