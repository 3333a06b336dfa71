"""A published table with our numbers under its own, before it is written in any format."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vcr_core import outcomes
from vcr_core.reporters.cells import Cell, cell_from
from vcr_core.reporters.matrix import mean_rate
from vcr_core.stats import Term, bootstrap_ratio

if TYPE_CHECKING:
    from vcr_core.paper.filling import Placed
    from vcr_core.summary import RunView

PAPER = "paper"
OURS = "ours"
OWN = "own"


@dataclass(frozen=True, slots=True)
class Head:
    """A column: its key, its heading, decimals of the published numbers, and what a cell holds."""

    key: str
    title: str
    decimals: int
    quantities: tuple[str, ...]
    is_rate: bool


@dataclass(frozen=True, slots=True)
class Line:
    """Our numbers of one row.

    Attributes:
        source: ``ours`` or ``own``, with what tells it from other lines of the row.
        cells: by column, one number a quantity.
        runs: what they rest on, by column.
        comparable: whether the paper's conditions are met.
    """

    source: str
    cells: Mapping[str, tuple[Cell, ...]]
    runs: Mapping[str, tuple[RunView, ...]]
    comparable: bool


@dataclass(frozen=True, slots=True)
class Group:
    """One row of the table: the published numbers, empty for rows of our own, and our lines."""

    row: str
    published: Mapping[str, tuple[float, ...]]
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class PaperTable:
    """A table ready to be written.

    Attributes:
        name: ``paper-table2`` or ``paper-table3``.
        title: heading.
        label: heading of the first column.
        heads: the other columns.
        groups: the rows, those of our own last.
        notes: what a reader has to know.
        checks: identities that the published numbers and ours must satisfy, and how far they do.
    """

    name: str
    title: str
    label: str
    heads: tuple[Head, ...]
    groups: tuple[Group, ...]
    notes: tuple[str, ...]
    checks: tuple[str, ...]


def rate_cell(runs: Sequence[RunView], name: str) -> Cell:
    """Return a rate over runs: Wilson's interval for one run, else videos resampled."""
    if not runs:
        return Cell(reason="no run", share=True)
    if len(runs) == 1:
        return cell_from((runs[0].summary.get("definitions") or {}).get(name), share=True)
    return mean_rate(runs, name)


def mean_cell(runs: Sequence[RunView], values: Sequence[Mapping[str, float]]) -> Cell:
    """Return a mean over attacked videos of several runs, repeats averaged within a video first.

    Args:
        runs: the runs, for the reason where there is nothing.
        values: one mapping of video to value a run.
    """
    if not runs:
        return Cell(reason="no run")
    sums: dict[str, list[float]] = defaultdict(list)
    for found in values:
        for video, value in found.items():
            sums[video].append(value)
    if not sums:
        return Cell(reason="not measured")
    result = bootstrap_ratio([Term(sum(v), len(v)) for v in sums.values()])
    return Cell(
        value=result.value, low=result.low, high=result.high, n=result.n, method=result.method
    )


def coverage(runs: Sequence[RunView]) -> frozenset[tuple[str, str]]:
    """Return the model and video of every outcome that runs contribute."""
    return frozenset(
        (run.model, record["video"])
        for run in runs
        for record in run.records
        if outcomes.is_evaluated(record)
    )


def coverage_note(named: Mapping[str, Sequence[RunView]], what: str, *, models: bool = True) -> str:
    """Return a warning if places that are read side by side rest on different outcomes.

    ``models = False``: the models differ by design, so only the videos have to be the same.
    """
    found = {
        name: frozenset(cell if models else cell[1:] for cell in coverage(runs))
        for name, runs in named.items()
        if runs
    }
    if len(set(found.values())) < 2:
        return ""
    texts: dict[str, list[str]] = {}
    for name, cells in found.items():
        size = _count(len({cell[-1] for cell in cells}), "video")
        if models:
            size = f"{_count(len({cell[0] for cell in cells}), 'model')}, {size}"
        texts.setdefault(size, []).append(name)
    return (
        f"{what} rest on different {'models or videos' if models else 'videos'}, so do not read "
        "differences between them as effects: "
        + "; ".join(f"{', '.join(names)}: {size}" for size, names in texts.items())
        + "."
    )


def own_note(placed: Sequence[Placed]) -> str:
    """Return what the lines of our own are, and why they are no comparison."""
    models = sorted({one.run.model for one in placed})
    datasets = sorted({one.dataset for one in placed})
    reasons = sorted({one.reason for one in placed})
    return (
        f"Lines marked {OWN} ({', '.join(models)} on {', '.join(datasets)}) are not comparable "
        f"with the paper: {'; '.join(reasons)}."
    )


def bare_cells(heads: Sequence[Head]) -> dict[str, tuple[Cell, ...]]:
    """Return a cell without a number for every quantity of every column."""
    return {
        head.key: tuple(Cell(reason="no run", share=head.is_rate) for _ in head.quantities)
        for head in heads
    }


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
