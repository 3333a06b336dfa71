"""Geometry of the report's charts; the template draws it as SVG, so all text is escaped there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from vcr_core.reporters.cells import Cell
from vcr_core.reporters.rows import NONE, Row, eps_text
from vcr_core.ties import tie_letters

WIDTH = 360
BAR_STEP = 46
BAR_TOP = 8
LABEL_CHARACTERS = 52
COLOURS = 8
MARKERS = ("circle", "square", "triangle", "diamond")
PLOT_LEFT, PLOT_RIGHT, PLOT_TOP, PLOT_BOTTOM, PLOT_HEIGHT = 38, 350, 10, 196, 230


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One system under one threat. Positions are SVG units from the left edge."""

    y: int
    label: str
    detail: str
    clean: float | None
    robust: float | None
    low: float | None
    high: float | None
    text: str
    title: str
    letters: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BarPanel:
    """Systems under one attack and threat, best first; those that share a letter are tied."""

    title: str
    subtitle: str
    height: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """How one attack (and defense) is drawn in every panel."""

    label: str
    colour: int
    marker: str
    dashed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One run on a curve."""

    x: float
    y: float
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A curve with its band of intervals (an SVG point list, empty without intervals)."""

    series: Series
    path: str
    band: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A labelled position on an axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePanel:
    """Accuracy over the radius for one model; ``what`` says which accuracy."""

    title: str
    subtitle: str
    axis: str
    what: str = "Robust accuracy"
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[Line, ...]


def bar_panels(
    rows: Sequence[Row], holds: Mapping[str, Mapping[str, bool]] | None = None
) -> list[BarPanel]:
    """Return a panel per attack and threat under which there are systems to compare.

    Args:
        rows: runs.
        holds: by run, which videos stay right; systems then get the letters of
            :func:`vcr_core.ties.tie_letters`.
    """
    attacked = [row for row in rows if row.attack != NONE]

    def key(row: Row) -> tuple[str, str, str, float, bool]:
        # Systems that the attack does not know are no match for those that it does.
        return (row.dataset, row.attack_text, row.norm, row.eps or 0.0, row.adaptive is False)

    several = len({row.dataset for row in attacked}) > 1
    panels = []
    for (dataset, attack, _, _, unaware), group in groupby(sorted(attacked, key=key), key=key):
        members = sorted(group, key=lambda row: -(row.system.robust.value or 0.0))
        letters = _letters(members, holds or {})
        panels.append(
            BarPanel(
                title=f"{attack}, {members[0].threat}",
                subtitle=", ".join(
                    filter(None, (dataset if several else "", "attack unaware" if unaware else ""))
                ),
                height=BAR_TOP + BAR_STEP * len(members) + 14,
                bars=tuple(_bar(row, i, letters.get(row.run, "")) for i, row in enumerate(members)),
            )
        )
    return [panel for panel in panels if len(panel.bars) > 1]


def _letters(members: Sequence[Row], holds: Mapping[str, Mapping[str, bool]]) -> dict[str, str]:
    """Return letters by run, where there are several with a value."""
    known = [row.run for row in members if row.system.robust.value is not None]
    if len(known) < 2 or not holds:
        return {}
    return dict(zip(known, tie_letters([holds[run] for run in known]), strict=True))


def curve_panels(rows: Sequence[Row]) -> tuple[list[Series], list[CurvePanel]]:
    """Return the legend and a panel per model and norm in which a curve has two radii or more."""
    curves: dict[tuple[str, str, str], dict[str, list[Row]]] = {}
    for row in rows:
        if row.eps is not None and row.system.robust.value is not None:
            panel = curves.setdefault((row.dataset, row.model, row.norm), {})
            panel.setdefault(series_label(row), []).append(row)
    kept = {
        key: {label: runs for label, runs in lines.items() if len({r.eps for r in runs}) > 1}
        for key, lines in sorted(curves.items())
    }
    labels = sorted({label for lines in kept.values() for label in lines})
    series = make_series(labels)
    several = len({dataset for dataset, _, _ in kept}) > 1
    panels = [_curve_panel(key, lines, series, several) for key, lines in kept.items() if lines]
    return list(series.values()), panels


UNAWARE = ", attack unaware"


def series_label(row: Row) -> str:
    """Return what names a curve: the attack, the defense, and whether the attack knows it."""
    if row.defense == NONE:
        return row.attack_text
    return f"{row.attack_text} vs {row.defense}" + ("" if row.adaptive else UNAWARE)


def make_series(labels: Sequence[str]) -> dict[str, Series]:
    """Return how each label is drawn; the first 32 all look different."""
    return {
        label: Series(
            label=label,
            colour=i % COLOURS,
            marker=MARKERS[(i + i // COLOURS) % len(MARKERS)],
            dashed=label.endswith(UNAWARE),
        )
        for i, label in enumerate(labels)
    }


def system_name(row: Row) -> str:
    """Return the model with its defense."""
    return row.model if row.defense == NONE else f"{row.model} + {row.defense}"


def shorten(text: str, limit: int) -> str:
    """Return ``text``, its middle replaced by an ellipsis where it is longer than ``limit``.

    Example:
        >>> shorten("video-swin.base-k400", 11)
        'video…-k400'
    """
    if len(text) <= limit:
        return text
    half = (limit - 1) // 2
    return f"{text[: limit - 1 - half]}…{text[len(text) - half :]}"


def _bar(row: Row, index: int, letters: str) -> Bar:
    robust, clean = row.system.robust, row.system.clean
    detail = "" if row.adaptive is None else "adaptive" if row.adaptive else "attack unaware"
    name = system_name(row)
    return Bar(
        y=BAR_TOP + BAR_STEP * index,
        label=shorten(name, LABEL_CHARACTERS - len(detail)),
        detail=detail,
        clean=_across(clean.value),
        robust=_across(robust.value),
        low=_across(robust.low),
        high=_across(robust.high),
        text=robust.text,
        title=f"{', '.join(filter(None, (name, detail)))}: robust {spoken(robust)}; "
        f"clean {spoken(clean)}",
        letters=letters,
    )


def _curve_panel(
    key: tuple[str, str, str],
    lines: dict[str, list[Row]],
    series: dict[str, Series],
    several: bool,
) -> CurvePanel:
    dataset, model, norm = key
    largest = max(row.eps or 0.0 for runs in lines.values() for row in runs) or 1.0
    radii = sorted({row.eps or 0.0 for runs in lines.values() for row in runs})
    ticks, last = [], -1e9
    for eps in [0.0, *radii]:
        at = across(eps, largest)
        if at - last >= 22:
            text = f"{eps * 255:g}" if norm == "linf" else f"{eps:g}"
            ticks.append(Tick(at=at, text=text))
            last = at
    return CurvePanel(
        title=model,
        subtitle=dataset if several else "",
        axis="ε in 1/255" if norm == "linf" else f"ε ({norm.upper()})",
        x_ticks=tuple(ticks),
        y_ticks=share_ticks(),
        lines=tuple(_line(series[label], runs, largest) for label, runs in sorted(lines.items())),
    )


def _line(series: Series, runs: list[Row], largest: float) -> Line:
    """Return a curve that starts at the clean accuracy, where the radius is 0."""
    ordered = sorted(runs, key=lambda row: row.eps or 0.0)
    start = ordered[0].system.clean
    cells = [(0.0, "no attack", start)] if start.value is not None else []
    cells += [
        (r.eps or 0.0, f"ε {eps_text(r.norm, r.eps or 0.0)}", r.system.robust) for r in ordered
    ]
    places = [
        (across(eps, largest), cell, f"{series.label}, {what}: {spoken(cell)}")
        for eps, what, cell in cells
    ]
    points = tuple(Point(x=x, y=upward(cell.value or 0.0), title=text) for x, cell, text in places)
    band = band_of([(x, cell) for x, cell, _ in places])
    return Line(series=series, path=path_of(points), band=band, points=points)


def path_of(points: Sequence[Point]) -> str:
    """Return the SVG path through points."""
    return "M" + " L".join(f"{p.x:.1f} {p.y:.1f}" for p in points)


def band_of(places: Sequence[tuple[float, Cell]]) -> str:
    """Return the SVG point list around intervals; empty where one is missing."""
    bounded = [(x, cell.low, cell.high) for x, cell in places]
    if any(low is None or high is None for _, low, high in bounded):
        return ""
    upper = [f"{x:.1f},{upward(high or 0.0):.1f}" for x, _, high in bounded]
    lower = [f"{x:.1f},{upward(low or 0.0):.1f}" for x, low, _ in reversed(bounded)]
    return " ".join(upper + lower)


def share_ticks() -> tuple[Tick, ...]:
    """Return the ticks of an axis in per cent."""
    return tuple(Tick(at=upward(v / 100), text=str(v)) for v in (0, 25, 50, 75, 100))


def spoken(cell: Cell) -> str:
    """Return a share in words, with its interval and fraction."""
    if cell.value is None:
        return f"missing ({cell.reason})"
    return f"{cell.text} % {cell.interval} ({cell.fraction})".replace(" ()", "")


def _across(share: float | None) -> float | None:
    return None if share is None else round(WIDTH * share, 1)


def across(eps: float, largest: float) -> float:
    """Return where a radius is on the axis of a curve panel."""
    return round(PLOT_LEFT + (PLOT_RIGHT - PLOT_LEFT) * eps / largest, 1)


def upward(share: float) -> float:
    """Return where a share is on the axis of a curve panel."""
    return round(PLOT_BOTTOM - (PLOT_BOTTOM - PLOT_TOP) * share, 1)
