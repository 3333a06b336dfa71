"""Cost against robustness: what an attack or a defense takes, and what it achieves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vcr_core.reporters.cells import NO_DEFENSE, Cell, format_number
from vcr_core.reporters.charts import (
    Series,
    Tick,
    make_series,
    share_ticks,
    spoken,
    system_name,
    upward,
)
from vcr_core.reporters.log_axis import LogAxis, axis_over
from vcr_core.reporters.rows import NONE, Row, cost_cell

if TYPE_CHECKING:
    from vcr_core.summary import RunView


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One run. Positions are SVG units; ``low`` and ``high`` are the ends of its interval."""

    series: Series
    run: str
    x: float
    y: float
    low: float | None
    high: float | None
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeOff:
    """A panel of runs that can be compared, over one cost."""

    title: str
    subtitle: str
    axis: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    dots: tuple[Dot, ...]


def trade_offs(ordered: Sequence[tuple[Row, RunView]]) -> tuple[list[Series], list[TradeOff]]:
    """Return the legend and the panels.

    Per dataset and threat, attacks over their time; per dataset, attack, threat and whether the
    attack knows the defense, defenses over the time it takes to judge a video, where there are at
    least two of them.
    """
    attacks: dict[tuple[str, ...], list[_Place]] = {}
    defenses: dict[tuple[str, ...], list[_Place]] = {}
    for row, run in ordered:
        if row.attack == NONE or row.system.robust.value is None:
            continue
        attack_time = row.seconds
        if attack_time.value:
            place = _Place(row, row.attack_text, attack_time)
            attacks.setdefault((row.dataset, row.threat), []).append(place)
        judging = cost_cell(run, "t_eval_s")
        if judging.value:
            place = _Place(row, NO_DEFENSE if row.defense == NONE else row.defense, judging)
            known = "attack unaware" if row.adaptive is False else "attack adaptive"
            key = (row.dataset, row.attack_text, row.threat, known)
            defenses.setdefault(key, []).append(place)
    chosen = [
        ("Attacks", key, places, "attack time a video, s")
        for key, places in attacks.items()
        if len({place.label for place in places}) > 1
    ] + [
        ("Defenses", key, places, "judging time a video, s")
        for key, places in defenses.items()
        if len({place.label for place in places} - {NO_DEFENSE}) > 1
    ]
    labels = sorted({place.label for _, _, places, _ in chosen for place in places})
    series = make_series(labels)
    several = len({row.dataset for row, _ in ordered}) > 1
    panels = [
        _panel(kind, key if several else key[1:], places, axis, series)
        for kind, key, places, axis in chosen
    ]
    return list(series.values()), panels


@dataclass(frozen=True, slots=True)
class _Place:
    row: Row
    label: str
    cost: Cell


def _panel(
    kind: str,
    key: Sequence[str],
    places: Sequence[_Place],
    axis_title: str,
    series: dict[str, Series],
) -> TradeOff:
    axis = axis_over([place.cost.value or 0.0 for place in places]) or LogAxis(0.1, 10.0)
    return TradeOff(
        title=kind,
        subtitle=", ".join(key),
        axis=axis_title,
        x_ticks=axis.ticks(),
        y_ticks=share_ticks(),
        dots=tuple(_dot(place, axis, series[place.label]) for place in places),
    )


def _dot(place: _Place, axis: LogAxis, series: Series) -> Dot:
    robust, seconds = place.row.system.robust, place.cost.value or 0.0
    return Dot(
        series=series,
        run=place.row.run,
        x=axis.at(seconds),
        y=upward(robust.value or 0.0),
        low=None if robust.low is None else upward(robust.low),
        high=None if robust.high is None else upward(robust.high),
        title=f"{system_name(place.row)}, {place.row.attack_text}: robust {spoken(robust)} at "
        f"{format_number(seconds)} s",
    )
