"""Comparing more than two systems: curves over the budget, mean ranks, trade-offs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Curve:
    """Accuracy over budgets, one fresh attack per budget.

    Attributes:
        area: trapezoid over eps divided by its span, in [0, 1].
        violations: pairs of neighbouring eps at which accuracy rose with the budget: the attack
            is too weak there.
    """

    area: float
    violations: tuple[tuple[float, float], ...]


def robustness_curve(accuracy: Mapping[float, float]) -> Curve:
    """Return area and violations of accuracies by eps.

    Example:
        >>> robustness_curve({0.0: 1.0, 0.1: 0.5, 0.2: 0.0}).area
        0.5

    Raises:
        ValueError: for fewer than two budgets, which span no area.
    """
    points = sorted(accuracy.items())
    if len(points) < 2:
        raise ValueError(f"a curve needs at least two budgets, found {len(points)}")
    steps = list(pairwise(points))
    area = math.fsum((e2 - e1) * (a1 + a2) / 2 for (e1, a1), (e2, a2) in steps)
    rising = tuple((e1, e2) for (e1, a1), (e2, a2) in steps if a2 > a1)
    return Curve(area / (points[-1][0] - points[0][0]), rising)


def mean_ranks(
    cells: Mapping[Hashable, Mapping[str, float | None]], *, higher_is_better: bool = True
) -> dict[str, float]:
    """Return each system's rank, averaged over cells; 1 is best, ties share the average rank.

    Args:
        cells: values by system within each cell, as (dataset, attack). Cells in which a system
            has no value are left out, or systems would be ranked on different grounds.
        higher_is_better: direction of the value.

    Returns:
        Mean rank by system, best first; empty if no cell has every system.
    """
    systems = sorted({system for values in cells.values() for system in values})
    totals = dict.fromkeys(systems, 0.0)
    used = 0
    for values in cells.values():
        present = {name: value for name, value in values.items() if value is not None}
        if len(present) != len(systems):
            continue
        used += 1
        for name, value in present.items():
            better = sum(
                other > value if higher_is_better else other < value for other in present.values()
            )
            equal = sum(other == value for other in present.values())
            totals[name] += better + (equal + 1) / 2
    if not used:
        return {}
    ranks = {name: total / used for name, total in totals.items()}
    return dict(sorted(ranks.items(), key=lambda item: (item[1], item[0])))


def pareto_front(
    points: Mapping[str, Sequence[float | None]], higher_is_better: Sequence[bool]
) -> list[str]:
    """Return the systems that no other one matches everywhere and beats somewhere.

    Args:
        points: one value per criterion, as robust accuracy, LPIPS, seconds; a system that lacks
            one is not compared.
        higher_is_better: direction of each criterion.
    """
    signs = [1.0 if higher else -1.0 for higher in higher_is_better]
    scored: dict[str, list[float]] = {}
    for name, values in points.items():
        present = [value for value in values if value is not None]
        if len(present) == len(values):
            scored[name] = [s * v for s, v in zip(signs, present, strict=True)]

    def is_beaten(mine: list[float]) -> bool:
        return any(
            other != mine and all(o >= m for o, m in zip(other, mine, strict=True))
            for other in scored.values()
        )

    return [name for name, mine in scored.items() if not is_beaten(mine)]
