"""Table 3 of VCR-Bench: defenses against attacks, means over models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

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
    own_note,
    rate_cell,
)

if TYPE_CHECKING:
    from vcr_core.reporters.cells import Cell
    from vcr_core.summary import RunView

NAME = "paper-table3"
QUANTITIES = ("robust_accuracy", "asr")
_DEFINITIONS = {"robust_accuracy": "robust_accuracy_paper", "asr": "asr_paper"}
BASE_SLACK = 0.05
"""Printed rates have one decimal, so a base of 74 % may come out up to 2 points off."""

NOTES = (
    "In every cell robust accuracy / attack success, both in per cent and of the model behind its "
    "defense; success is a change of the label, among videos that were right behind the defense.",
    "The paper's cells are means over models. It does not say which of its attacks knew the "
    "defense; ours are apart: adaptive ones did, unaware ones did not.",
)


def table3(runs: Sequence[RunView], *, own_rows: bool = False) -> PaperTable:
    """Return Table 3 with our runs under its rows.

    Args:
        runs: any runs; those that meet the paper's conditions fill the table.
        own_rows: whether the others follow, in lines of their own under the rows that they belong
            to, and in rows and columns of their own where the paper has none.
    """
    placed = place_runs(runs)
    fitting = [p for p in placed if not p.reason and p.defense in published.defenses3()]
    others = [p for p in placed if p not in fitting]
    shown = [*fitting, *(others if own_rows else ())]
    attacks = _ordered(published.attacks3(), [p.attack for p in shown])
    defenses = _ordered(published.defenses3(), [p.defense for p in shown])
    heads = tuple(Head(attack, attack, 1, QUANTITIES, is_rate=True) for attack in attacks)
    groups = tuple(
        Group(
            defense,
            {
                attack: numbers
                for (row, attack), numbers in published.table3().items()
                if row == defense
            },
            tuple(_lines(defense, fitting, others if own_rows else [], heads)),
        )
        for defense in defenses
    )
    return PaperTable(
        NAME,
        f"Table 3 of {published.CITATION}: defenses against attacks",
        "Defense",
        heads,
        groups,
        tuple(filter(None, [*_notes(fitting, others, own_rows), *_uneven(groups)])),
        tuple(_checks(groups)),
    )


def _ordered(known: Sequence[str], found: Sequence[str]) -> list[str]:
    return [*known, *sorted(set(found) - set(known))]


def _lines(
    defense: str, fitting: Sequence[Placed], others: Sequence[Placed], heads: Sequence[Head]
) -> list[Line]:
    """Return our lines of one defense; an empty one where there are none."""
    lines = []
    for source, chosen in ((OURS, fitting), (OWN, others)):
        for adaptive in (True, False):
            here = [p for p in chosen if p.defense == defense and p.adaptive is adaptive]
            if here:
                kind = "" if defense == BARE else ", adaptive" if adaptive else ", unaware"
                lines.append(_line(f"{source}{kind}", here, heads, comparable=source == OURS))
    known = defense in published.defenses3() and (fitting or not others)
    if known and not any(line.comparable for line in lines):
        lines.insert(0, Line(OURS, bare_cells(heads), {}, True))
    return lines


def _line(
    source: str, chosen: Sequence[Placed], heads: Sequence[Head], *, comparable: bool
) -> Line:
    runs = {
        head.key: tuple(p.run for p in chosen if p.attack == head.key)
        for head in heads
        if any(p.attack == head.key for p in chosen)
    }
    cells: dict[str, tuple[Cell, ...]] = {
        head.key: tuple(
            rate_cell(runs.get(head.key, ()), _DEFINITIONS[name]) for name in QUANTITIES
        )
        for head in heads
    }
    return Line(source, cells, runs, comparable)


def _notes(fitting: Sequence[Placed], others: Sequence[Placed], own_rows: bool) -> list[str]:
    notes = [*NOTES]
    if fitting:
        models = sorted({p.model for p in fitting})
        notes.append(f"Our lines are means over {', '.join(models)}.")
    for source, chosen in ((OURS, fitting), (OWN, others if own_rows else [])):
        notes.append(coverage_note(_rows_of(chosen), f"Rows marked {source}"))
    if others and own_rows:
        notes.append(own_note([p for p in others if p.reason]))
    elif others:
        reasons = left_out([p for p in others if p.reason])
        rest = sum(not p.reason for p in others)
        if rest:
            reasons.append(f"{rest} runs: defenses that the paper's table does not have")
        notes.append(f"Not in the table: {'; '.join(reasons)}. --own-rows shows them.")
    return notes


def _rows_of(placed: Sequence[Placed]) -> dict[str, list[RunView]]:
    found: dict[str, list[RunView]] = {}
    for one in placed:
        found.setdefault(one.defense, []).append(one.run)
    return found


def _uneven(groups: Sequence[Group]) -> list[str]:
    """Return a warning a line whose columns rest on different models or videos."""
    found = []
    for group in groups:
        for line in group.lines:
            name = f"{group.row} ({line.source})"
            found.append(coverage_note(line.runs, f"The columns of {name}"))
    return found


def _checks(groups: Sequence[Group]) -> list[str]:
    """Return columns whose base ``robust / (1 - ASR)`` is another one than their neighbours'.

    In one row every column has the same defended clean accuracy, if it rests on the same cells.
    """
    found = []
    paper = {
        g.row: {k: published.implied_clean(*v) for k, v in g.published.items()} for g in groups
    }
    found += _other_bases(paper, "paper")
    for source in (OURS, OWN):
        ours = {
            f"{group.row} ({line.source})" if "," in line.source else group.row: {
                key: base
                for key, (robust, asr) in line.cells.items()
                if robust.value is not None
                and asr.value is not None
                and (base := published.implied_clean(robust.value, asr.value)) is not None
            }
            for group in groups
            for line in group.lines
            if line.runs and line.source.startswith(source)
        }
        found += _other_bases(ours, source)
    return found


def _other_bases(rows: Mapping[str, Mapping[str, float | None]], who: str) -> list[str]:
    """Return a sentence a column that deviates; one that says so where none does."""
    deviating: dict[str, list[tuple[float, float]]] = {}
    compared = 0
    for bases in rows.values():
        known = {column: base for column, base in bases.items() if base is not None}
        if len(known) < 2:
            continue
        compared += 1
        centre = median(known.values())
        for column, base in known.items():
            if abs(base - centre) > BASE_SLACK:
                deviating.setdefault(column, []).append((base, centre))
    if not compared:
        return []
    if not deviating:
        return [f"robust / (1 - ASR), {who}: the same base in all columns of every row"]
    return [
        f"robust / (1 - ASR), {who}: {column} has another base than the other columns in "
        f"{len(pairs)} of {compared} rows ({_span([b for b, _ in pairs])} % against "
        f"{_span([c for _, c in pairs])} %), so it rests on other videos or models"
        for column, pairs in deviating.items()
    ]


def _span(values: Sequence[float]) -> str:
    low, high = 100 * min(values), 100 * max(values)
    return f"{low:.1f}" if high - low < 0.05 else f"{low:.1f} to {high:.1f}"
