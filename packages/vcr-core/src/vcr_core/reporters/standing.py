"""Where a system stands among the others of a report: its mean rank, and the Pareto front."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from vcr_core.ranking import mean_ranks, pareto_front
from vcr_core.reporters.cells import Cell
from vcr_core.reporters.extras import MEAN_RANK, PARETO

if TYPE_CHECKING:
    from vcr_core.reporters.rows import Row
    from vcr_core.summary import RunView

PERCEPTUAL = "lpips"


def with_standing(pairs: Sequence[tuple[Row, RunView]]) -> list[tuple[Row, RunView]]:
    """Return ``pairs`` with ``mean_rank`` and ``pareto_front`` among the extras of their rows.

    A system is a model with its defenses. It is ranked by robust accuracy within every attack at
    one threat on the same videos, by the lower one where the attack was made with and without
    knowledge of the defense. Ranks are averaged over the cells that every system has; there have
    to be two systems and two cells. On the Pareto front are the runs of a cell that no other run
    matches in robust accuracy, LPIPS and seconds and beats in one of them.
    """
    cells: dict[Hashable, list[Row]] = defaultdict(list)
    for row, run in pairs:
        if row.norm:
            cells[_cell_key(row, run)].append(row)
    ranks = _ranks(cells)
    fronts = {name: cell for rows in cells.values() for name, cell in _front(rows).items()}
    found = []
    for row, run in pairs:
        extras = dict(row.extras)
        if row.norm and _system(row) in ranks:
            extras[MEAN_RANK] = ranks[_system(row)]
        if row.run in fronts:
            extras[PARETO] = fronts[row.run]
        found.append((replace(row, extras=extras), run))
    return found


def _ranks(cells: dict[Hashable, list[Row]]) -> dict[str, Cell]:
    values: dict[Hashable, dict[str, float | None]] = {}
    for key, rows in cells.items():
        systems: dict[str, float | None] = {}
        for row in rows:
            value, before = row.system.robust.value, systems.get(_system(row))
            systems[_system(row)] = (
                value if before is None or (value is not None and value < before) else before
            )
        values[key] = systems
    every = {system for systems in values.values() for system in systems}
    complete = sum(
        len(systems) == len(every) and None not in systems.values() for systems in values.values()
    )
    if len(every) < 2 or complete < 2:
        return {}
    return {system: Cell(value=rank, n=complete) for system, rank in mean_ranks(values).items()}


def _front(rows: Sequence[Row]) -> dict[str, Cell]:
    points: dict[str, tuple[float | None, ...]] = {}
    for row in rows:
        distance = row.metrics.get(PERCEPTUAL)
        # An attack that was taken over from another run has its time there.
        seconds = row.seconds.value or None
        points[row.run] = (row.system.robust.value, distance.value if distance else None, seconds)
    compared = [name for name, values in points.items() if None not in values]
    if len(compared) < 2:
        return {}
    front = pareto_front(points, (True, False, False))
    return {name: Cell(value=float(name in front), n=len(compared)) for name in compared}


def _cell_key(row: Row, run: RunView) -> Hashable:
    fingerprint = (run.manifest.get("dataset") or {}).get("fingerprint")
    return row.dataset, fingerprint, row.attack_text, row.threat


def _system(row: Row) -> str:
    return f"{row.model}\0{row.defense}"
