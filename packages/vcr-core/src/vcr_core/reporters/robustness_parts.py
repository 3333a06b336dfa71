"""Two forms that tables of robustness have: a row a system, and a map coloured by what is lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from vcr_core.reporters.cells import cell_from
from vcr_core.reporters.robustness import (
    Head,
    Line,
    Shown,
    Table,
    absent_notes,
    dropped_note,
    video_note,
)

if TYPE_CHECKING:
    from vcr_core.robustness.collect import Section

Measure: TypeAlias = tuple[str, str, bool]
"""Heading, key in ``overall``, and whether the number is a share."""


def overall_table(
    section: Section, specs: Sequence[Measure], title: str, legend: Sequence[str]
) -> Table:
    """Return a row a system with the measures that any of them has."""
    systems = section.systems
    chosen = [spec for spec in specs if any(spec[1] in s["overall"] for s in systems.values())]
    entries = [s["overall"].get(key) or {} for s in systems.values() for _, key, _ in chosen]
    lines = [
        Line(
            name=name,
            cells=tuple(
                Shown(
                    cell=cell_from(numbers["overall"].get(key), share=share),
                    word=str((numbers["overall"].get(key) or {}).get("type") or ""),
                )
                for _, key, share in chosen
            ),
        )
        for name, numbers in systems.items()
    ]
    heads = tuple(Head(title=heading) for heading, _, _ in chosen)
    notes = [*legend, video_note(section.videos, section.variant), dropped_note(entries)]
    notes += [f"{note}." for note in section.notes]
    return Table(
        title=title,
        rows="Model",
        heads=heads,
        lines=tuple(lines),
        notes=(*filter(None, notes), *absent_notes(lines, heads)),
    )


def map_table(
    title: str,
    rows: str,
    heads: Sequence[str],
    lines: Sequence[tuple[str, str, Sequence[Any]]],
    notes: Sequence[str],
    context: str = "",
) -> Table:
    """Return a table whose cells are coloured by what is lost."""
    shown = [
        Line(name=name, context=context, cells=tuple(_heated(entry) for entry in entries))
        for name, context, entries in lines
    ]
    columns = tuple(Head(title=head) for head in heads)
    return Table(
        title=title,
        rows=rows,
        heads=columns,
        lines=tuple(shown),
        notes=(*notes, *absent_notes(shown, columns)),
        context=context,
        is_map=True,
        is_detail=True,
    )


def _heated(entry: Any) -> Shown:
    cell = cell_from(entry, share=True, absent="no such run")
    return Shown(cell=cell, heat=None if cell.value is None else 1 - cell.value)
