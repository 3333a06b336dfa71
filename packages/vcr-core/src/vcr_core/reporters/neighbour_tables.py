"""Neighbouring clips in tables: what survives a step in time, and how far apart the clips are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vcr_core.reporters.cells import Cell, cell_from
from vcr_core.reporters.robustness import Head, Line, Shown, Table, absent_notes, video_note
from vcr_core.reporters.robustness_parts import Measure, map_table, overall_table

if TYPE_CHECKING:
    from vcr_core.robustness.collect import Section

_NATURAL: tuple[Measure, ...] = (
    ("Anchor %", "anchor_accuracy", True),
    ("NR %", "retention", True),
    ("Worst %", "worst_accuracy", True),
    ("Drop, points", "worst_drop", True),
    ("Flip rate %", "flip_rate", True),
    ("FP %", "flip_probability", True),
    ("FR %", "flip_ratio", True),
    ("Confidence change", "confidence_change", False),
)
_NATURAL_LEGEND = (
    "NR: right on the neighbour, of the anchors that were right. Worst: right on the anchor and on "
    "every neighbour; Drop: what that costs. Flip rate: another label one step away. FP: labels "
    "that differ between consecutive neighbours. Anchor and Worst have exact (Clopper-Pearson) "
    "intervals."
)
_FLIP_LEGEND = "FR: FP divided by that of {reference}."
_LEVELS = 255


def neighbour_tables(section: Section, reference: str) -> list[Table]:
    """Return means, retention by distance, and distances of pairs."""
    legend = [_NATURAL_LEGEND, *([_FLIP_LEGEND.format(reference=reference)] if reference else [])]
    distances = sorted({abs(level) for level in section.levels})
    return [
        overall_table(section, _NATURAL, "How often a prediction survives a step in time", legend),
        map_table(
            "NR % by distance in steps",
            "Model",
            [f"±{distance}" for distance in distances],
            [
                (name, "", [numbers["distances"][str(d)]["retention"] for d in distances])
                for name, numbers in section.systems.items()
            ],
            [video_note(section.videos, section.variant)],
        ),
        _pairs(section),
    ]


def _pairs(section: Section) -> Table:
    heads = (
        Head(title="n", group="Brittle pairs"),
        Head(title="within L∞ 16/255, %", group="Brittle pairs"),
        Head(title="L∞ mean", group="Brittle pairs"),
        Head(title="L∞ std", group="Brittle pairs"),
        Head(title="RMS mean", group="Brittle pairs"),
        Head(title="RMS std", group="Brittle pairs"),
        Head(title="L∞ mean", group="All pairs"),
        Head(title="RMS mean", group="All pairs"),
    )
    lines = []
    for name, numbers in section.systems.items():
        brittle, every = numbers["pairs"]["brittle"], numbers["pairs"]["all"]
        cells = [
            Cell(value=brittle["count"]),
            cell_from(brittle["close"], share=True),
            *(_in_levels(brittle[key]) for key in ("linf_mean", "linf_std", "rms_mean", "rms_std")),
            *(_in_levels(every[key]) for key in ("linf_mean", "rms_mean")),
        ]
        lines.append(Line(name=name, cells=tuple(Shown(cell=cell) for cell in cells)))
    return Table(
        title="How far apart neighbours are, in 8-bit levels",
        rows="Model",
        heads=heads,
        lines=tuple(lines),
        notes=(
            "Brittle pairs: the anchor is right and the neighbour is wrong. An adversary is "
            "usually held within L∞ 16/255.",
            *absent_notes(lines, heads),
        ),
        is_detail=True,
    )


def _in_levels(entry: Mapping[str, Any]) -> Cell:
    cell = cell_from(entry)
    if cell.value is None:
        return cell
    low, high = (None if end is None else _LEVELS * end for end in (cell.low, cell.high))
    return replace(cell, value=_LEVELS * cell.value, low=low, high=high)
