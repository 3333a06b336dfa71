"""Comparisons of runs in a terminal; what does not fit is left out by name, never squeezed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcr_core.reporters.comparison import (
    Compared,
    Section,
    head_lines,
    note_lines,
    sections,
    verdict_lines,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

LEAST = 4
"""Columns of numbers that are always there: both values, their difference, and n."""
_LABEL = 22
"""A narrower first column is hard to read; columns at the right are left out before that."""
_GAP = 2


def draw(found: Compared, console: Console) -> None:
    """Draw tables with their notes; intervals go under their numbers."""
    from rich.text import Text

    for line in head_lines(found):
        console.print(Text(line))
    hidden: list[str] = []
    for section in sections(found):
        count, label = fitting(section, console.width)
        hidden = list(section.columns[1 + count :])
        console.print(_table(section, count, label))
    if hidden:
        names = ", ".join(hidden)
        console.print(Text(f"Left out for lack of width: {names} (see --format md).", style="dim"))
    for line in note_lines(found):
        console.print(Text(line, style="dim"))
    for verdict, line in zip(found.verdicts, verdict_lines(found), strict=True):
        console.print(Text(line, style="" if verdict.passed else "bold red"))


def fitting(section: Section, width: int) -> tuple[int, int]:
    """Return how many columns of numbers fit beside the label, and the width of the label."""
    longest = max(len(row[0]) for row in (section.columns, *section.rows))
    wanted = min(longest, _LABEL)
    widths = [
        max(len(line) for row in (section.columns, *section.rows) for line in _broken(row[i]))
        for i in range(1, len(section.columns))
    ]
    count = len(widths)
    while count > LEAST and wanted + sum(widths[:count]) + _GAP * count > width:
        count -= 1
    return count, max(wanted, min(longest, width - sum(widths[:count]) - _GAP * count))


def _table(section: Section, count: int, label: int) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=section.title or None, title_justify="left", box=SIMPLE_HEAD, pad_edge=False,
        padding=(0, 1, 0, 0), show_edge=False,
    )  # fmt: skip
    first, *others = section.columns
    table.add_column(Text(first), max_width=label, overflow="fold")
    for column in others[:count]:
        title = Text("\n".join(_broken(column)))
        table.add_column(title, justify="right", no_wrap=True, vertical="top")
    for name, *cells in section.rows:
        table.add_row(Text(name), *(_cell(text) for text in cells[:count]))
    return table


def _cell(text: str) -> Text:
    from rich.text import Text

    value, *interval = _broken(text)
    shown = Text(value)
    for line in interval:
        shown.append(f"\n{line}", style="dim")
    return shown


def _broken(text: str) -> list[str]:
    """Return a number and its interval, or the words of a heading, as lines."""
    value, bracket, interval = text.partition(" [")
    if bracket:
        return [value, f"[{interval}"]
    return {
        "A only": ["A", "only"], "B only": ["B", "only"], "p (Holm)": ["p", "(Holm)"],
        "Videos needed": ["Videos", "needed"],
    }.get(text, [text])  # fmt: skip
