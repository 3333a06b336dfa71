"""What nobody optimised beside what an adversary did, as tables that every format shows.

:func:`robustness_report` makes the tables; they are plain data. The numbers are those of
:mod:`vcr_core.robustness`, which needs numpy; without it a note takes the place of the tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from vcr_core.reporters.cells import Cell
from vcr_core.robustness.systems import check_reference
from vcr_core.transformation import is_transformation

if TYPE_CHECKING:
    from vcr_core.reporters.rows import Row
    from vcr_core.robustness.collect import Robustness
    from vcr_core.summary import RunView

NO_NUMPY = "Robustness tables need numpy: pip install 'vcr-core[report]'."


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A column.

    Attributes:
        title: heading, with the unit.
        group: heading over several columns, or ``""``.
    """

    title: str
    group: str = ""

    @property
    def text(self) -> str:
        """Both headings on one line."""
        return f"{self.group}: {self.title}" if self.group else self.title


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A number in a table.

    Attributes:
        cell: the number.
        word: what to say with it, as the attack that it comes from.
        heat: how bad it is, from 0 to 1, where the table is a map; ``None`` elsewhere.
    """

    cell: Cell
    word: str = ""
    heat: float | None = None

    @property
    def shade(self) -> str:
        """The heat as CSS wants it."""
        return "0" if self.heat is None else f"{min(max(self.heat, 0.0), 1.0):.3f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row: its name, what that belongs to, and its numbers."""

    name: str
    cells: tuple[Shown, ...]
    context: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table.

    Attributes:
        title: what it is about.
        context: what stands beside the names of rows, as ``Group``.
        rows: what its rows are, as ``Model``.
        heads: its columns, without that of the names.
        lines: its rows.
        notes: what a reader has to know, and why numbers are missing.
        is_map: whether cells are coloured by how bad they are.
        is_detail: whether places with little room leave it out.
    """

    title: str
    rows: str
    heads: tuple[Head, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()
    context: str = ""
    is_map: bool = False
    is_detail: bool = False

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Headings over columns with their widths; empty if there are none."""
        if not any(head.group for head in self.heads):
            return []
        found: list[tuple[str, int]] = []
        for head in self.heads:
            if found and found[-1][0] == head.group:
                found[-1] = (head.group, found[-1][1] + 1)
            else:
                found.append((head.group, 1))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """Tables under one heading."""

    title: str
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustnessReport:
    """All there is to show.

    Attributes:
        side_by_side: a table a dataset.
        chapters: one a family and list of types.
        note: what takes their place where they cannot be made.
    """

    side_by_side: tuple[Table, ...] = ()
    chapters: tuple[Chapter, ...] = ()
    note: str = ""

    @property
    def tables(self) -> list[Table]:
        """All tables in their order."""
        return [*self.side_by_side, *(table for c in self.chapters for table in c.tables)]


def robustness_report(
    ordered: Sequence[tuple[Row, RunView]], reference: str = ""
) -> RobustnessReport | None:
    """Return the tables, or ``None`` where no run is a shift, a corruption or tampering.

    Args:
        ordered: all runs of the report with their rows.
        reference: model that corruption errors and flip rates are divided by.

    Raises:
        UsageError: if no run is of the reference.
    """
    runs = [run for _, run in ordered]
    found = collected(runs, reference)
    if found is None:
        return None
    if isinstance(found, str):
        return RobustnessReport(note=found)
    from vcr_core.reporters.robustness_details import chapters
    from vcr_core.reporters.side_by_side import side_by_side

    return RobustnessReport(
        side_by_side=tuple(side_by_side(ordered, found)), chapters=tuple(chapters(found))
    )


def collected(runs: Sequence[RunView], reference: str = "") -> Robustness | str | None:
    """Return the numbers, or why there are none, or ``None`` where there is nothing to collect.

    Raises:
        UsageError: if no run is of the reference.
    """
    if not any(is_transformation(run.manifest) for run in runs):
        check_reference((), reference)
        return None
    if find_spec("numpy") is None:
        return NO_NUMPY
    from vcr_core.robustness.collect import collect

    found = collect(runs, reference)
    return found if found.sections else None


def absent_notes(lines: Sequence[Line], heads: Sequence[Head]) -> list[str]:
    """Return why numbers are missing, one sentence a reason."""
    reasons: dict[str, dict[str, None]] = {}
    for line in lines:
        for head, shown in zip(heads, line.cells, strict=True):
            if shown.cell.value is None and shown.cell.reason:
                place = f"{head.title.removesuffix(' %')} of {line.name}"
                reasons.setdefault(shown.cell.reason, {})[place] = None
    found = []
    for reason, places in reasons.items():
        few = list(places)[:3]
        more = f" and {len(places) - 3} more" if len(places) > 3 else ""
        found.append(f"No value, {reason}: {', '.join(few)}{more}.")
    return found


def video_note(count: int, variant: str = "") -> str:
    """Return on how many videos a table rests."""
    few = "; intervals of so few videos are rough" if count < 20 else ""
    where = f" ({variant})" if variant else ""
    return f"{count} videos{where}{few}."


def dropped_note(entries: Sequence[Mapping[str, object]]) -> str:
    """Return how many resamples had no value, or nothing."""
    most = max((int(str(e.get("dropped") or 0)) for e in entries), default=0)
    if not most:
        return ""
    return (
        f"Up to {most} of the resamples behind an interval have an empty denominator and are left "
        "out of it."
    )
