"""Certificates and detection in the HTML report: curves, facts and tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vcr_core.reporters.cells import Cell, cell_from, format_number
from vcr_core.reporters.charts import (
    COLOURS,
    MARKERS,
    CurvePanel,
    Line,
    Point,
    Series,
    Tick,
    across,
    band_of,
    path_of,
    share_ticks,
    spoken,
    upward,
)

if TYPE_CHECKING:
    from vcr_core.reporters.rows import Row
    from vcr_core.summary import RunView

_DETECTION_TITLES = {
    "auroc": "AUROC, all attacked videos",
    "tpr_at_5_fpr": "TPR at 5 % FPR, all attacked videos",
    "auroc_over_successes": "AUROC, successful attacks",
    "tpr_at_5_fpr_over_successes": "TPR at 5 % FPR, successful attacks",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveRow:
    """Certified accuracy at one radius."""

    radius: str
    levels: str
    cell: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateDetails:
    """What a run's certificates were made with, and their curve."""

    facts: tuple[tuple[str, str], ...]
    rows: tuple[CurveRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionRow:
    """A number about a detector."""

    title: str
    cell: Cell
    attacked: int
    clean: int


def certificate_details(summary: Mapping[str, Any]) -> CertificateDetails | None:
    """Return facts and curve of a run's certificates; ``None`` where it has none."""
    found = summary.get("certificate")
    if not isinstance(found, Mapping):
        return None
    names = {
        "norm": "norm", "sigma": "noise sigma", "alpha": "failure probability alpha",
        "n0": "draws n0", "n": "draws n", "dims": "values of a video",
        "largest_radius": "largest possible radius",
        "median_radius": "median radius, correct videos",
    }  # fmt: skip
    facts = [
        (title, format_number(found[key]) if isinstance(found[key], float) else str(found[key]))
        for key, title in names.items()
        if found.get(key) is not None
    ]
    facts.append(("average certified radius", cell_from(found.get("average_radius")).both))
    facts.append(("abstained %", cell_from(found.get("abstained"), share=True).both))
    return CertificateDetails(
        facts=tuple(facts),
        rows=tuple(
            CurveRow(
                radius=f"{point['radius']:g}",
                levels="" if point["rms"] is None else format_number(255 * point["rms"]),
                cell=cell_from(point, share=True),
            )
            for point in found.get("curve") or ()
        ),
    )


def detection_rows(summary: Mapping[str, Any]) -> tuple[DetectionRow, ...]:
    """Return the rows about a run's detector; none where it has no detector."""
    found = summary.get("detection") or {}
    return tuple(
        DetectionRow(
            title=title,
            cell=cell_from(found[key], share=key.startswith("tpr")),
            attacked=int(found[key].get("n") or 0),
            clean=int(found[key].get("n_clean") or 0),
        )
        for key, title in _DETECTION_TITLES.items()
        if isinstance(found.get(key), Mapping)
    )


def certified_panels(
    ordered: Sequence[tuple[Row, RunView]],
) -> tuple[list[Series], list[CurvePanel]]:
    """Return the legend and a panel per model of certified accuracy over the L2 radius.

    Runs of the same system have the same certificates, whatever attacks it: the first one counts.
    """
    systems: dict[tuple[str, str], dict[str, tuple[str, Mapping[str, Any]]]] = {}
    for row, run in ordered:
        certificate = run.summary.get("certificate")
        if isinstance(certificate, Mapping) and certificate.get("curve"):
            panel = systems.setdefault((row.dataset, row.model), {})
            panel.setdefault(_system_key(run), (_label(row, certificate), certificate))
    labels = sorted({label for lines in systems.values() for label, _ in lines.values()})
    series = {
        label: Series(
            label=label, colour=i % COLOURS, marker=MARKERS[i % len(MARKERS)], dashed=False
        )
        for i, label in enumerate(labels)
    }
    several = len({dataset for dataset, _ in systems}) > 1
    panels = []
    for (dataset, model), lines in sorted(systems.items()):
        curves = [(series[label], found["curve"]) for label, found in lines.values()]
        panels.append(_panel(model, dataset if several else "", curves))
    return list(series.values()), panels


def _system_key(run: RunView) -> str:
    experiment = run.manifest.get("experiment") or {}
    parts = (experiment.get("model"), experiment.get("defense"), experiment.get("seed"))
    return json.dumps(parts, sort_keys=True, default=str)


def _label(row: Row, certificate: Mapping[str, Any]) -> str:
    return f"{row.defense}, sigma {certificate['sigma']:g}, n {certificate['n']}"


def _panel(
    model: str, dataset: str, curves: Sequence[tuple[Series, Sequence[Mapping[str, Any]]]]
) -> CurvePanel:
    radii = sorted({float(point["radius"]) for _, curve in curves for point in curve})
    largest = radii[-1] or 1.0
    ticks: list[Tick] = []
    for radius in radii:
        at = across(radius, largest)
        if not ticks or at - ticks[-1].at >= 34:
            ticks.append(Tick(at=at, text=f"{radius:g}"))
    return CurvePanel(
        title=model,
        subtitle=dataset,
        axis="L2 radius",
        what="Certified accuracy",
        x_ticks=tuple(ticks),
        y_ticks=share_ticks(),
        lines=tuple(_line(series, curve, largest) for series, curve in curves),
    )


def _line(series: Series, curve: Sequence[Mapping[str, Any]], largest: float) -> Line:
    cells = [(float(point["radius"]), cell_from(point, share=True)) for point in curve]
    points = tuple(
        Point(
            x=across(radius, largest),
            y=upward(cell.value or 0.0),
            title=f"{series.label}, radius {radius:g}: {spoken(cell)}",
        )
        for radius, cell in cells
    )
    places = [(across(radius, largest), cell) for radius, cell in cells]
    return Line(series=series, path=path_of(points), band=band_of(places), points=points)
