"""Runs in the terminal: a table for people, tab-separated columns for pipes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from vcr_core.atomic import write_text
from vcr_core.reporters import target_file
from vcr_core.reporters.cells import MISSING, Cell, one_line
from vcr_core.reporters.columns import (
    LEGEND,
    LEGEND_DEFENDED,
    LEGEND_HEADLINE,
    Column,
    accuracy_columns,
    compact_columns,
    footnotes,
    headline_columns,
    missing_reasons,
    reading_columns,
)
from vcr_core.reporters.detection_table import detection_report
from vcr_core.reporters.extras import extra_legends
from vcr_core.reporters.flat import delimited
from vcr_core.reporters.robustness import robustness_report
from vcr_core.reporters.robustness_text import draw
from vcr_core.reporters.rows import Row, make_rows, paired_rows
from vcr_core.reporters.transfer_matrix import transfer_report

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from vcr_core.summary import RunView


class TerminalReporter:
    """Shows runs on a stream, or writes the plain form to a file.

    Attributes:
        reference: model that corruption errors are divided by, ``""`` for none.
    """

    details = False
    """See :class:`vcr_core.protocols.Reporter`."""

    reference: str = ""

    def show(self, runs: Sequence[RunView], stream: TextIO) -> None:
        """Write a table to ``stream``: drawn if it is a terminal, tab-separated if not."""
        ordered = paired_rows(runs)
        rows = [row for row, _ in ordered]
        if not stream.isatty():
            stream.write(plain_table(rows))
            return
        from rich.console import Console

        console = Console(file=stream, highlight=False)
        draw_table(rows, console)
        robustness = robustness_report(ordered, self.reference)
        if robustness is not None:
            draw(robustness, console)
        detection = detection_report(ordered)
        if detection is not None:
            draw(detection, console)
        transfer = transfer_report(ordered)
        if transfer is not None:
            draw(transfer, console)

    def text(self, runs: Sequence[RunView]) -> str:
        """Return the tab-separated form."""
        return plain_table(make_rows(runs))

    def render(self, runs: Sequence[RunView], out: Path) -> Sequence[Path]:
        """Write the tab-separated form to ``out``, a file or a folder; return its path."""
        path = target_file(out, "report.tsv")
        write_text(path, self.text(runs))
        return [path]


def plain_table(rows: Sequence[Row]) -> str:
    """Return tab-separated columns with a header, without decoration or wrapping."""
    return delimited(rows, delimiter="\t", missing=MISSING)


def draw_table(rows: Sequence[Row], console: Console) -> None:
    """Draw a table with notes; intervals go under their numbers.

    Where the terminal is narrow, metrics are left out from the right, then the words move into
    one column. The notes name what is left out.
    """
    from rich.text import Text

    notes = footnotes(rows)
    numbers = {note.flag: note.number for note in notes}
    columns, hidden = _fitting(rows, numbers, console)
    console.print(_table(columns, rows, numbers))
    lines = [LEGEND]
    if any(row.defended for row in rows):
        both = any(column.title.startswith("Defended") for column in columns)
        lines.append(f"{LEGEND_DEFENDED} The result is in bold." if both else LEGEND_HEADLINE)
    if hidden:
        lines.append(f"Left out for lack of width: {', '.join(hidden)}.")
    lines += extra_legends(rows)
    reasons = missing_reasons(rows, columns)
    if reasons:
        lines.append(f"{MISSING} stands for a missing number: {'; '.join(reasons)}.")
    lines += [f"({note.number}) {note.flag}: {note.text}" for note in notes]
    for line in lines:
        console.print(Text(line, style="dim"))


def _fitting(
    rows: Sequence[Row], numbers: Mapping[str, int], console: Console
) -> tuple[list[Column], list[str]]:
    """Return the columns that fit, and the titles of those that do not."""
    pairs = {column.title for column in accuracy_columns(rows)}
    shapes = (
        (reading_columns(rows), {*pairs, "ASR %"}),
        (compact_columns(rows), pairs),
        (headline_columns(rows), {"Clean %", "Robust %"}),
    )
    for columns, needed in shapes:
        least = 1 + max(i for i, column in enumerate(columns) if column.title in needed)
        for count in range(len(columns), least - 1, -1):
            if _width(_table(columns[:count], rows, numbers), console) <= console.width:
                return columns[:count], [column.title for column in columns[count:]]
    return columns[:least], [column.title for column in columns[least:]]


def _width(table: Table, console: Console) -> int:
    from rich.measure import Measurement

    return Measurement.get(console, console.options.update(max_width=100_000), table).maximum


def _table(columns: Sequence[Column], rows: Sequence[Row], numbers: Mapping[str, int]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        title = Text(column.title.replace("Defended ", "Defended\n").replace(" (", "\n("))
        table.add_column(
            title, justify="right" if column.numeric else "left", no_wrap=True, vertical="top"
        )
    for row in rows:
        table.add_row(*(_drawn(column, row, numbers) for column in columns))
    return table


def _drawn(column: Column, row: Row, numbers: Mapping[str, int]) -> Text:
    from rich.text import Text

    value = column.get(row)
    if isinstance(value, Cell):
        text = Text(value.text, style="bold" if column.headline(row) else "")
        if value.interval:
            text.append(f"\n{value.interval}", style="not bold dim")
        return text
    first, *others = [one_line(line) for line in value.split("\n")] or [""]
    text = Text(first)
    if column.title in ("Model", "Run") and row.flags:
        marks = ",".join(str(numbers[flag]) for flag in row.flags)
        text.append(f" ({marks})", style="yellow")
    for line in others:
        text.append(f"\n{line}", style="dim")
    if column.title == "Errors" and row.errors:
        text.stylize("bold red")
    return text
