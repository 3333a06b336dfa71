"""How well tampering is detected, as tables that every format shows.

The numbers are those of :mod:`vcr_core.tamper_detection`; what shows them is what shows the tables
of robustness.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from vcr_core.manifest import table
from vcr_core.reporters.cells import Cell, cell_from, format_number
from vcr_core.reporters.robustness import (
    Chapter,
    Head,
    Line,
    RobustnessReport,
    Shown,
    Table,
    absent_notes,
    dropped_note,
)
from vcr_core.reporters.rows import NONE, Row

if TYPE_CHECKING:
    from vcr_core.summary import RunView

TITLE: Final = "Detection of tampering"

LEGEND: Final = (
    "All numbers are means over effects with 95 % intervals, sources resampled. Balanced: mean of "
    "the recall of tampered videos and of originals; 50 for a detector that always says the same. "
    "AUROC: tampered against original videos by the score, 0.5 for guesses. Named: mean recall "
    "over the effects and the original. Only recall is what MVTamperBench prints as accuracy; it "
    "is 100 for a detector that suspects everything."
)
LEGEND_EFFECTS: Final = (
    "Each effect together with the originals; the overall numbers are means over effects. A video "
    "without an answer is wrong."
)
LEGEND_CONFUSION: Final = (
    "Numbers of videos: a row a true class, a column what they are taken for. What is off the "
    "diagonal is mistaken."
)
_FEW: Final = 20

_SIDES: Final = {
    "clean": "",
    "attacked": "transformed",
    "clean_defended": "defended",
    "attacked_defended": "transformed, defended",
}

_Source: TypeAlias = tuple[str, str, bool]
"""Part of the numbers of an effect, key in it, whether it is a share."""
_Column: TypeAlias = tuple[str, _Source]

_OVERVIEW: Final[tuple[_Column, ...]] = (
    ("Balanced %", ("binary", "balanced_accuracy", True)),
    ("AUROC", ("binary", "auroc", False)),
    ("TPR at 5 % FPR, %", ("binary", "tpr_at_5_fpr", True)),
    ("Recall %", ("binary", "recall", True)),
    ("Named %", ("classes", "macro_recall", True)),
    ("IoU %", ("places", "iou", True)),
    ("Found %", ("places", "hit_rate", True)),
)
_EFFECTS: Final[tuple[_Column, ...]] = (
    ("Accuracy %", ("binary", "accuracy", True)),
    ("Balanced %", ("binary", "balanced_accuracy", True)),
    ("AUROC", ("binary", "auroc", False)),
    ("TPR at 5 % FPR, %", ("binary", "tpr_at_5_fpr", True)),
    ("Precision %", ("binary", "precision", True)),
    ("Recall %", ("binary", "recall", True)),
    ("F1 %", ("binary", "f1", True)),
    ("Named %", ("classes", "recall", True)),
    ("IoU %", ("places", "iou", True)),
    ("Found %", ("places", "hit_rate", True)),
)

Numbers: TypeAlias = Mapping[str, Any]


def detection_report(ordered: Sequence[tuple[Row, RunView]]) -> RobustnessReport | None:
    """Return the tables, or ``None`` where no run is over the dataset ``tamper``.

    Returns:
        A table a dataset with a row a detector, and a chapter a detector with its effects and who
        is taken for whom.
    """
    found = [
        (row, side, _ground(row, run), numbers)
        for row, run in ordered
        for side, numbers in (run.summary.get("tamper_detection") or {}).items()
    ]
    if not found:
        return None
    names = _names([(row, side, ground) for row, side, ground, _ in found])
    shown = [(ground, name, n) for (_, _, ground, n), name in zip(found, names, strict=True)]
    return RobustnessReport(
        side_by_side=tuple(
            _overview(ground, [(name, n) for other, name, n in shown if other == ground])
            for ground in dict.fromkeys(ground for ground, _, _ in shown)
        ),
        chapters=tuple(
            Chapter(title=f"{name} on {ground}", tables=(_effects(n), _confusion(n)))
            for ground, name, n in shown
        ),
    )


def _ground(row: Row, run: RunView) -> str:
    """Return which videos these are: the dataset, what it is made from, effects and segment."""
    chosen = table(run.manifest, "dataset")
    base = chosen.get("base")
    if not base:
        return row.dataset
    if isinstance(base, Mapping):
        own = ", ".join(f"{key} = {value}" for key, value in base.items() if key != "name")
        base = f"{base.get('name') or ''} ({own})" if own else base.get("name")
    effects = chosen.get("effects")
    parts = [str(base), "+".join(effects) if isinstance(effects, list) else effects]
    parts.append(chosen.get("location"))
    seconds = chosen.get("duration_s")
    parts.append(f"{seconds:g} s" if isinstance(seconds, int | float) else None)
    return f"{row.dataset}: {', '.join(str(part) for part in parts if part is not None)}"


def _names(found: Sequence[tuple[Row, str, str]]) -> list[str]:
    """Return what to call each detector; what would read the same gets the run's hash."""
    names = [_name(row, side) for row, side, _ in found]
    times = Counter((ground, name) for (_, _, ground), name in zip(found, names, strict=True))
    return [
        f"{name} ({row.run.rpartition('-')[2]})" if times[(ground, name)] > 1 else name
        for (row, _, ground), name in zip(found, names, strict=True)
    ]


def _name(row: Row, side: str) -> str:
    parts = [row.model]
    if row.attack == NONE and row.detail:
        parts.append(row.detail)
    if row.attack != NONE and side.startswith("attacked"):
        parts.append(row.attack_text)
    if row.defense != NONE and side.endswith("defended"):
        parts.append(row.defense)
    word = _SIDES.get(side, side)
    return " · ".join(parts) + (f" ({word})" if word else "")


def _overview(ground: str, found: Sequence[tuple[str, Numbers]]) -> Table:
    columns = [
        (title, source)
        for title, source in _OVERVIEW
        if source[0] != "places" or any("places" in numbers for _, numbers in found)
    ]
    lines = tuple(
        Line(
            name=name,
            cells=(
                *(Shown(cell=_overall(numbers, source)) for _, source in columns),
                Shown(cell=cell_from(numbers["binary"]["original"]["tnr"], share=True)),
                Shown(cell=cell_from(numbers["answers"]["undecided_rate"], share=True)),
            ),
        )
        for name, numbers in found
    )
    titles = [*(title for title, _ in columns), "Originals kept %", "No answer %"]
    heads = tuple(Head(title=title) for title in titles)
    counts = {(n["videos"], n["sources"]) for _, n in found}
    videos = " or ".join(f"{videos} videos of {sources} sources" for videos, sources in counts)
    few = any(n["sources"] < _FEW for _, n in found)
    return Table(
        title=f"Detectors on {ground}",
        rows="Detector",
        heads=heads,
        lines=lines,
        notes=(
            LEGEND,
            f"{videos}{'; intervals of so few sources are rough' if few else ''}.",
            *absent_notes(lines, heads),
        ),
    )


def _overall(numbers: Numbers, source: _Source) -> Cell:
    part, key, share = source
    if part == "classes":
        return cell_from(numbers["classes"].get(key), share=share)
    found = (numbers.get(part) or {}).get("macro") or {}
    return cell_from(found.get(key), share=share, absent="the detector names no segment")


def _effects(numbers: Numbers) -> Table:
    columns = [c for c in _EFFECTS if c[1][0] != "places" or "places" in numbers]
    lines = [
        Line(name=kind, cells=tuple(Shown(cell=_of(numbers, kind, s)) for _, s in columns))
        for kind in numbers["types"]
    ]
    if len(numbers["types"]) > 1:
        overall = tuple(Shown(cell=_of(numbers, "macro", source)) for _, source in columns)
        lines.append(Line(name="overall", cells=overall))
    heads = tuple(Head(title=title) for title, _ in columns)
    entries = [entry for kind in numbers["binary"].values() for entry in kind.values()]
    notes = [LEGEND_EFFECTS, dropped_note(entries), *_further(numbers)]
    return Table(
        title="By effect",
        rows="Effect",
        heads=heads,
        lines=tuple(lines),
        notes=(*filter(None, notes), *absent_notes(lines, heads)),
    )


def _of(numbers: Numbers, kind: str, source: _Source) -> Cell:
    part, key, share = source
    if part == "classes":
        classes = numbers["classes"]
        entry = classes["macro_recall"] if kind == "macro" else classes[key].get(kind)
        return cell_from(entry, share=share)
    return cell_from(numbers[part][kind].get(key), share=share)


def _confusion(numbers: Numbers) -> Table:
    classes = numbers["classes"]
    lines = []
    for truth, counts in zip(classes["truth"], classes["confusion"], strict=True):
        total = sum(counts)
        cells = [
            Shown(
                cell=Cell(value=float(count)),
                heat=None if taken == truth or not count else count / total,
            )
            for taken, count in zip(classes["predicted"], counts, strict=True)
        ]
        lines.append(Line(name=f"{truth} ({format_number(total)})", cells=tuple(cells)))
    return Table(
        title="Who is taken for whom",
        rows="True class",
        heads=tuple(Head(title=name) for name in classes["predicted"]),
        lines=tuple(lines),
        notes=(LEGEND_CONFUSION,),
        is_map=True,
    )


def _further(numbers: Numbers) -> list[str]:
    """Return in sentences what is no number of an effect."""
    original = numbers["binary"]["original"]
    answers, calibration = numbers["answers"], numbers["calibration"]
    found = [
        f"Of {numbers['originals']} originals {_text(original['tnr'])} are left alone and "
        f"{_text(original['fpr'])} are called tampered; {_text(answers['undecided_rate'])} of all "
        f"videos have no answer, and {_text(answers['unnamed_rate'])} no class."
    ]
    bias = cell_from(answers["position_bias"])
    if bias.value is not None:
        found.append(
            f"Position bias {bias.both}: how much more often the answer is yes where yes is the "
            "first option; 0 is none, 1 is always the first."
        )
    errors = [
        f"{format_number(calibration[key]['value'])} of the {what}"
        for key, what in (("ece_score", "score"), ("ece_class", "predicted class"))
        if calibration[key]["value"] is not None
    ]
    if errors:
        found.append(f"Expected calibration error, 10 bins: {', '.join(errors)}.")
    cost = numbers["cost"]
    parts = [
        f"{format_number(cost[key])} {what}"
        for key, what in (
            ("frames", "frames"),
            ("seconds_decode", "s to read"),
            ("seconds_detect", "s to detect"),
        )
        if cost[key] is not None
    ]
    if parts:
        found.append(f"A video costs {', '.join(parts)}.")
    return found


def _text(entry: Mapping[str, Any]) -> str:
    cell = cell_from(entry, share=True)
    return f"{cell.text} %" if cell.value is not None else cell.text
