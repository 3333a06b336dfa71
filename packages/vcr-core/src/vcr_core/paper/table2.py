"""Table 2 of VCR-Bench: models under its attacks, one row a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vcr_core.paper import published
from vcr_core.paper.filling import BARE, Placed, left_out, place_runs
from vcr_core.paper.layout import (
    OURS,
    OWN,
    Group,
    Head,
    Line,
    PaperTable,
    bare_cells,
    coverage_note,
    mean_cell,
    own_note,
    rate_cell,
)
from vcr_core.tables import metric_value

if TYPE_CHECKING:
    from vcr_core.reporters.cells import Cell
    from vcr_core.summary import RunView

NAME = "paper-table2"
_RATES = {
    "clean_acc": "clean_accuracy", "asr": "asr_paper", "robust_acc": "robust_accuracy_paper",
}  # fmt: skip
_DECIMALS = {"ssim": 4, "lpips": 4}
_TIMES = ("t_clean_s", "t_attack_s", "t_eval_s")

NOTES = (
    "The paper's numbers are means over all of its runs of a model, most likely with those behind "
    "a defense; ours are means over the runs without one. Attacks are targeted at the least likely "
    "class, and any change of the label is a success, as in the paper.",
    "Distances, iterations and seconds are means over attacked videos, successful or not. Time is "
    "that of the clean prediction, the attack and the final one, on the machine of each run.",
)


def table2(runs: Sequence[RunView], *, own_rows: bool = False) -> PaperTable:
    """Return Table 2 with our runs under its rows.

    Args:
        runs: any runs; those that meet the paper's conditions fill the table.
        own_rows: whether the others follow in rows of their own.
    """
    placed = [one for one in place_runs(runs) if one.defense == BARE]
    heads = tuple(
        Head(c.name, c.title, _DECIMALS.get(c.name, 2), (c.name,), c.is_rate)
        for c in published.COLUMNS
    )
    fitting = _by_model([one for one in placed if not one.reason])
    groups = [
        Group(
            model,
            {name: (value,) for name, value in values.items()},
            (_line(fitting.get(model, []), heads, comparable=True),)
            if fitting or not own_rows
            else (),
        )
        for model, values in published.table2().items()
    ]
    others = [one for one in placed if one.reason]
    if own_rows:
        groups += [
            Group(model, {}, (_line(chosen, heads, comparable=False),))
            for model, chosen in _by_model(others, with_dataset=True).items()
        ]
    shown = fitting if not own_rows else {**fitting, **_by_model(others, with_dataset=True)}
    return PaperTable(
        NAME,
        f"Table 2 of {published.CITATION}: models under attack",
        "Model",
        heads,
        tuple(groups),
        tuple(filter(None, _notes(shown, others, own_rows))),
        tuple(_checks(groups)),
    )


def _by_model(placed: Sequence[Placed], *, with_dataset: bool = False) -> dict[str, list[Placed]]:
    found: dict[str, list[Placed]] = {}
    for one in sorted(placed, key=lambda p: (p.dataset, p.model, p.attack)):
        row = f"{one.run.model} on {one.dataset}" if with_dataset else one.model
        found.setdefault(row, []).append(one)
    return found


def _line(chosen: Sequence[Placed], heads: Sequence[Head], *, comparable: bool) -> Line:
    runs = tuple(one.run for one in chosen)
    source = OURS if comparable else OWN
    if not runs:
        return Line(source, bare_cells(heads), {}, comparable)
    cells = {head.key: (_cell(head.key, runs),) for head in heads}
    return Line(source, cells, dict.fromkeys(cells, runs), comparable)


def _cell(column: str, runs: Sequence[RunView]) -> Cell:
    if column in _RATES:
        return rate_cell(runs, _RATES[column])
    reader = _reader(column, runs)
    return mean_cell(
        runs,
        [
            {
                r["video"]: v
                for r in run.records
                if r["status"] == "ok" and (v := reader(r)) is not None
            }
            for run in runs
        ],
    )


def _reader(column: str, runs: Sequence[RunView]) -> Callable[[Mapping[str, Any]], float | None]:
    if column == "iters":
        return lambda record: _cost(record, ("iterations",))
    if column == "time_per_video_s":
        return lambda record: _cost(record, _TIMES)
    name = _metric(column, runs)
    return lambda record: metric_value(record, name)


def _metric(column: str, runs: Sequence[RunView]) -> str:
    """Return the metric that fills a column: the paper's definition where the runs have it."""
    candidates = published.names().metrics[column]
    there = {name for run in runs for r in run.records for name in r.get("metrics") or ()}
    return next((name for name in candidates if name in there), candidates[0])


def _cost(record: Mapping[str, Any], names: Sequence[str]) -> float | None:
    cost = record.get("cost") or {}
    values = [cost[name] for name in names if isinstance(cost.get(name), int | float)]
    return float(sum(values)) if values else None


def _notes(
    shown: Mapping[str, Sequence[Placed]], others: Sequence[Placed], own_rows: bool
) -> list[str]:
    notes = [*NOTES]
    notes += [_attacks_note(shown), _metrics_note(shown)]
    runs = {row: [one.run for one in chosen] for row, chosen in shown.items()}
    notes.append(coverage_note(runs, "Rows", models=False))
    if others and own_rows:
        notes.append(own_note(others))
    elif others:
        notes.append(f"Not in the table: {'; '.join(left_out(others))}. --own-rows shows them.")
    return notes


def _attacks_note(shown: Mapping[str, Sequence[Placed]]) -> str:
    sets = {row: tuple(sorted(one.attack for one in chosen)) for row, chosen in shown.items()}
    if len(set(sets.values())) < 2:
        (attacks,) = set(sets.values()) or {()}
        return f"Our rows are means over {', '.join(attacks)}." if attacks else ""
    texts = [f"{row}: {', '.join(attacks)}" for row, attacks in sets.items()]
    return (
        "Our rows are means over different attacks, so do not read differences between them as "
        f"differences between models. {'; '.join(texts)}."
    )


def _metrics_note(shown: Mapping[str, Sequence[Placed]]) -> str:
    runs = [one.run for chosen in shown.values() for one in chosen]
    other = [
        f"{column} is {found}, the paper's is {names[0]}"
        for column, names in published.names().metrics.items()
        if runs and (found := _metric(column, runs)) != names[0]
    ]
    return f"Other definitions than the paper's: {'; '.join(other)}." if other else ""


def _checks(groups: Sequence[Group]) -> list[str]:
    """Return how far ``robust = clean · (1 - ASR)`` holds for the paper and for our lines."""
    paper = [
        published.identity_gap(*(g.published[name][0] for name in published.RATES))
        for g in groups
        if g.published
    ]
    ours = [
        published.identity_gap(values[0], values[1], values[2])
        for group in groups
        for line in group.lines
        if line.runs
        and len(values := [v for n in published.RATES if (v := line.cells[n][0].value) is not None])
        == len(published.RATES)
    ]
    return [
        f"robust = clean · (1 - ASR), {name}: to within {100 * max(map(abs, gaps)):.3f} points in "
        f"{len(gaps)} rows"
        for name, gaps in (("paper", paper), ("ours", ours))
        if gaps
    ]
