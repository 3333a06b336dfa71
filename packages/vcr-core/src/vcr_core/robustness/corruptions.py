"""Types of damage in several severities: means, relative numbers, and errors beside a reference.

``A`` is clean accuracy, ``A_{c,s}`` that under type ``c`` and severity ``s``, and ``E = 1 - A``.
mPC and rPC are those of Yi et al. (arXiv 2110.06513), gamma_a and gamma_r of Schiappa et al. (arXiv
2207.01398), CE and relative CE of Hendrycks and Dietterich (arXiv 1903.12261), R of Gu et al.
(arXiv 1904.10076).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from vcr_core.robustness.replicates import Floats, entry, missing, over, proportion
from vcr_core.robustness.tallies import Tally, clean_sums, tally

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vcr_core.robustness.replicates import Resampler
    from vcr_core.robustness.systems import Ground, Kind, System

Found: TypeAlias = "Floats | str"
"""A number, or the reason why there is none."""


class Grid:
    """One system's accuracy by type and severity, over the videos of its ground.

    Args:
        ground: what is put together; says which cells there should be.
        system: whose runs.
        kinds: the types that means are over.
        resampler: of the ground's videos.
    """

    def __init__(
        self, ground: Ground, system: System, kinds: Sequence[Kind], resampler: Resampler
    ) -> None:
        self.ground = ground
        self.kinds = list(kinds)
        self.levels = [level for level in ground.levels(kinds) if level != 0]
        self.groups = {
            kind: next(p.group for (k, _), p in ground.places.items() if k == kind)
            for kind in self.kinds
        }
        self.tallies: dict[Kind, dict[int, Tally]] = {kind: {} for kind in self.kinds}
        for (kind, level), run in system.runs.items():
            if kind in self.tallies:
                self.tallies[kind][level] = tally(run, ground.videos, resampler)
        cells = [t for row in self.tallies.values() for t in row.values()]
        self.right, self.valid = clean_sums(cells, resampler)
        self.clean = over(self.right, self.valid)
        self.whole = all(t.whole for t in cells)
        self.videos = len(ground.videos)

    @property
    def n(self) -> int:
        """Videos with a clean prediction."""
        return round(float(self.valid[0]))

    def lost(self, kind: Kind) -> list[int]:
        """Return the severities that no run of this system was made for."""
        return [level for level in self.levels if level not in self.tallies[kind]]

    def over_levels(self, kind: Kind, number: Callable[[Tally], Floats]) -> Found:
        """Return the mean of a number over severities, or which of them are missing."""
        lost = self.lost(kind)
        if lost:
            return f"incomplete: {self.ground.label(kind)} has no severity {_listed(lost)}"
        return _mean([number(self.tallies[kind][level]) for level in self.levels])

    def error(self, tallied: Tally) -> Floats:
        """Return ``E_{c,s}``."""
        return 1 - tallied.accuracy

    def gamma_a(self, tallied: Tally) -> Floats:
        """Return ``1 - (A - A_{c,s})``."""
        return 1 - (self.clean - tallied.accuracy)

    def gamma_r(self, tallied: Tally) -> Floats:
        """Return ``A_{c,s} / A``, which may exceed 1."""
        return over(tallied.accuracy, self.clean)

    def area(self, kind: Kind) -> Found:
        """Return the area under accuracy over severity from 0 on, divided by its span."""
        lost = self.lost(kind)
        if lost:
            return f"incomplete: {self.ground.label(kind)} has no severity {_listed(lost)}"
        points = [(0, self.clean)]
        points += [(level, self.tallies[kind][level].accuracy) for level in self.levels]
        area = np.zeros_like(self.clean)
        for (a, before), (b, after) in pairwise(points):
            area += (b - a) * (before + after) / 2
        return over(area, np.full_like(area, points[-1][0]))

    def corruption_error(self, kind: Kind, reference: Grid, *, relative: bool) -> Found:
        """Return CE, or relative CE, beside a reference on the same cells."""
        base, other = (self.clean, reference.clean) if relative else (1.0, 1.0)
        own = self.over_levels(kind, lambda t: base - t.accuracy)
        if isinstance(own, str):
            return own
        if kind not in reference.tallies or reference.lost(kind):
            return f"the reference lacks {self.ground.label(kind)}"
        theirs = reference.over_levels(kind, lambda t: other - t.accuracy)
        if isinstance(theirs, str):
            return theirs
        found = over(own, theirs)
        if np.isnan(found[0]):
            what = "loses nothing" if relative else "makes no error"
            return f"the reference {what} under {self.ground.label(kind)}"
        return found


def describe_corruptions(grid: Grid, reference: Grid | None = None) -> dict[str, Any]:
    """Return everything about one system under the types of one suite.

    Args:
        grid: of the system.
        reference: of the model that errors are divided by; the same cells and resampler.

    Returns:
        ``types`` (each with ``severities``, ``pc``, ``gamma_a``, ``gamma_r``, ``retention``,
        ``area``, and ``ce`` and ``relative_ce`` where there is a reference), ``groups`` and
        ``overall`` (``clean``, ``mpc``, ``rpc``, ``gamma_a``, ``gamma_r``, ``mr``, ``area``, and
        ``mce`` and ``relative_mce``). A number that lacks a cell is ``None`` and says which.
    """
    numbers = {kind: _numbers(grid, kind, reference) for kind in grid.kinds}
    return {
        "types": {
            grid.ground.label(kind): {
                "group": grid.groups[kind],
                "severities": _severities(grid, kind),
                **_entries(grid, numbers[kind]),
            }
            for kind in grid.kinds
        },
        "groups": {
            group: _entries(grid, _over_kinds(numbers, members))
            for group, members in _by_group(grid).items()
        },
        "overall": _overall(grid, numbers, reference is not None),
        "videos": grid.videos,
        "n": grid.n,
    }


def mean_retention(grid: Grid, kind: Kind) -> float | None:
    """Return ``R`` of a type, the mean over severities."""
    found = grid.over_levels(kind, lambda t: t.retention)
    return None if isinstance(found, str) or np.isnan(found[0]) else float(found[0])


def _numbers(grid: Grid, kind: Kind, reference: Grid | None) -> dict[str, Found]:
    found: dict[str, Found] = {
        "pc": grid.over_levels(kind, lambda t: t.accuracy),
        "gamma_a": grid.over_levels(kind, grid.gamma_a),
        "gamma_r": grid.over_levels(kind, grid.gamma_r),
        "retention": grid.over_levels(kind, lambda t: t.retention),
        "area": grid.area(kind),
    }
    if reference is not None:
        found["ce"] = grid.corruption_error(kind, reference, relative=False)
        found["relative_ce"] = grid.corruption_error(kind, reference, relative=True)
    return found


def _severities(grid: Grid, kind: Kind) -> dict[str, Any]:
    found = {}
    for level, tallied in sorted(grid.tallies[kind].items()):
        count = grid.videos
        found[str(level)] = {
            **tallied.entries(),
            "gamma_a": entry(grid.gamma_a(tallied), tallied.n, count),
            "gamma_r": entry(grid.gamma_r(tallied), tallied.n, count, reason=_NO_CLEAN),
            "n": tallied.n,
        }
    return found


def _by_group(grid: Grid) -> dict[str, list[Kind]]:
    groups: dict[str, list[Kind]] = {}
    for kind in grid.kinds:
        groups.setdefault(grid.groups[kind], []).append(kind)
    return dict(sorted(groups.items()))


def _over_kinds(
    numbers: Mapping[Kind, Mapping[str, Found]], members: Sequence[Kind]
) -> dict[str, Found]:
    names = numbers[members[0]]
    return {name: _mean_of([numbers[kind][name] for kind in members]) for name in names}


def _overall(
    grid: Grid, numbers: Mapping[Kind, Mapping[str, Found]], has_reference: bool
) -> dict[str, Any]:
    over_types = _over_kinds(numbers, grid.kinds)
    # Groups have equal weight in gamma, whatever the number of their types.
    over_groups = [_over_kinds(numbers, members) for members in _by_group(grid).values()]
    mpc = over_types["pc"]
    found: dict[str, Found] = {
        "mpc": mpc,
        "rpc": mpc if isinstance(mpc, str) else over(mpc, grid.clean),
        "gamma_a": _mean_of([group["gamma_a"] for group in over_groups]),
        "gamma_r": _mean_of([group["gamma_r"] for group in over_groups]),
        "mr": over_types["retention"],
        "area": over_types["area"],
    }
    if has_reference:
        found["mce"] = over_types["ce"]
        found["relative_mce"] = over_types["relative_ce"]
    clean = proportion(grid.right, grid.valid, grid.videos, whole=grid.whole)
    return {"clean": clean, **_entries(grid, found)}


_NO_CLEAN = "clean accuracy is 0"
_REASONS = {
    "rpc": _NO_CLEAN, "gamma_r": _NO_CLEAN,
    "retention": "no right prediction before", "mr": "no right prediction before",
}  # fmt: skip


def _entries(grid: Grid, numbers: Mapping[str, Found]) -> dict[str, Any]:
    return {
        name: missing(found)
        if isinstance(found, str)
        else entry(found, grid.n, grid.videos, reason=_REASONS.get(name, ""))
        for name, found in numbers.items()
    }


def _mean_of(found: Sequence[Found]) -> Found:
    """Return the mean, or the first reason why there is none."""
    reasons = [value for value in found if isinstance(value, str)]
    if reasons:
        return reasons[0]
    return _mean([value for value in found if not isinstance(value, str)])


def _mean(values: Sequence[Floats]) -> Floats:
    return np.mean(values, axis=0)  # type: ignore[no-any-return]


def _listed(levels: Sequence[int]) -> str:
    return ", ".join(map(str, levels))
