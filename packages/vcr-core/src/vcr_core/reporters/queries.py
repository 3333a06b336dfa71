"""Success over queries: how many forward passes an attack needed before it met its goal."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vcr_core import outcomes, stats
from vcr_core.reporters.cells import Cell
from vcr_core.reporters.charts import (
    CurvePanel,
    Line,
    Point,
    Series,
    band_of,
    make_series,
    path_of,
    series_label,
    share_ticks,
    spoken,
    upward,
)
from vcr_core.reporters.log_axis import LogAxis
from vcr_core.reporters.rows import NONE, Row

if TYPE_CHECKING:
    from vcr_core.summary import RunView

MAX_STEPS = 48
MAX_BANDS = 4
"""Where more lines than this cross, their bands would hide them; points tell the intervals."""


@dataclass(frozen=True, slots=True)
class Search:
    """What the videos of one run took.

    Attributes:
        tried: how many videos were attacked.
        queries: forward passes up to the first success, of those that succeeded; ascending.
        budget: the most forward passes that any video took.
    """

    tried: int
    queries: tuple[int, ...]
    budget: int

    def success(self, budget: float) -> Cell:
        """Return the share of attacked videos that fell within a number of forward passes."""
        found = stats.rate(bisect_right(self.queries, budget), self.tried)
        return Cell(
            value=found.value, low=found.low, high=found.high,
            k=bisect_right(self.queries, budget), n=self.tried, method=found.method, share=True,
        )  # fmt: skip


def search_of(records: Sequence[Mapping[str, Any]]) -> Search | None:
    """Return what the attack of a run took; ``None`` where it asked nothing or nobody counted.

    A success is one that was judged on the stored video, in the attacker's view. One that no query
    showed before counts at the end, with all passes that were spent on it.
    """
    tried = [record for record in records if record.get("status") == "ok"]
    spent = [_count(record, "forwards") for record in tried]
    if not any(spent):
        return None
    queries = [
        _count(record, "queries_to_first_success") or passes
        for record, passes in zip(tried, spent, strict=True)
        if outcomes.succeeded(record)
    ]
    return Search(len(tried), tuple(sorted(queries)), max(spent))


def query_panels(
    ordered: Sequence[tuple[Row, RunView]],
) -> tuple[list[Series], list[CurvePanel]]:
    """Return the legend and a panel per model and threat of success over forward passes."""
    panels: dict[tuple[str, str, str], dict[str, Search]] = {}
    for row, run in ordered:
        found = search_of(run.records) if row.attack != NONE else None
        if found is not None and found.budget > 1:
            panel = panels.setdefault((row.dataset, row.model, row.threat), {})
            # An attack that does not know the defense is the attack on the bare model.
            unaware = row.adaptive is False
            panel.setdefault(row.attack_text if unaware else series_label(row), found)
    labels = sorted({label for lines in panels.values() for label in lines})
    series = make_series(labels)
    several = len({dataset for dataset, _, _ in panels}) > 1
    return list(series.values()), [
        _panel(model, f"{threat}, {dataset}" if several else threat, lines, series)
        for (dataset, model, threat), lines in sorted(panels.items())
    ]


def _panel(
    title: str, subtitle: str, lines: Mapping[str, Search], series: Mapping[str, Series]
) -> CurvePanel:
    axis = LogAxis(1.0, float(max(search.budget for search in lines.values())))
    return CurvePanel(
        title=title,
        subtitle=subtitle,
        axis="forward passes",
        what="Attack success",
        x_ticks=axis.ticks(),
        y_ticks=share_ticks(),
        lines=tuple(
            _line(series[label], lines[label], axis, with_band=len(lines) <= MAX_BANDS)
            for label in sorted(lines)
        ),
    )


def _line(series: Series, search: Search, axis: LogAxis, *, with_band: bool) -> Line:
    """Return a step curve with a mark at its end, where the attack had spent all it would."""
    budgets = _steps(search)
    places: list[tuple[float, Cell]] = []
    for budget in budgets:
        cell = search.success(budget)
        if places:
            places.append((axis.at(budget), places[-1][1]))
        places.append((axis.at(budget), cell))
    marks = sorted({10**e for e in range(1, 7) if 10**e < search.budget} | {search.budget})
    points = tuple(
        Point(
            x=axis.at(budget),
            y=upward(cell.value or 0.0),
            title=f"{series.label}, {budget} forward passes: {spoken(cell)}",
        )
        for budget in marks
        for cell in [search.success(budget)]
    )
    path = path_of([Point(x=x, y=upward(c.value or 0.0), title="") for x, c in places])
    return Line(series=series, path=path, band=band_of(places) if with_band else "", points=points)


def _steps(search: Search) -> list[int]:
    """Return the budgets at which the curve is drawn: where it rises, or a choice of those."""
    budgets = sorted({1, *search.queries, search.budget})
    if len(budgets) <= MAX_STEPS:
        return budgets
    last = math.log(search.budget)
    wanted = {round(math.exp(last * i / (MAX_STEPS - 1))) for i in range(MAX_STEPS)}
    return sorted({1, search.budget} | wanted)


def _count(record: Mapping[str, Any], name: str) -> int:
    value = (record.get("cost") or {}).get(name)
    return value if isinstance(value, int) else 0
