"""Data for people and programs: a table on a terminal, tab-separated lines in a pipe, or JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

json_option: Callable[[Any], Any] = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON with a schema number."
)


def is_terminal() -> bool:
    """Return whether stdout is a terminal."""
    return sys.stdout.isatty()


def emit_json(data: Any) -> None:
    """Write data to stdout as indented JSON with sorted sets and no NaN."""
    import json

    click.echo(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))


def emit_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    title: str = "",
    styles: Mapping[str, str] | None = None,
) -> None:
    """Write rows to stdout.

    On a terminal: a table with headings (Rich, which respects ``NO_COLOR``). In a pipe: one line a
    row, fields separated by tabs, no headings; tabs and line ends inside fields become blanks.

    Args:
        columns: headings.
        rows: one sequence a row; ``None`` is shown as nothing.
        title: heading of the table, on a terminal only.
        styles: a Rich style by column, on a terminal only.
    """
    texts = [["" if value is None else str(value) for value in row] for row in rows]
    if not is_terminal():
        for row in texts:
            click.echo("\t".join(" ".join(value.split()) for value in row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, style=(styles or {}).get(column), overflow="fold")
    for row in texts:
        table.add_row(*(Text(value) for value in row))
    Console().print(table)


def emit_facts(facts: Sequence[tuple[str, object]]) -> None:
    """Write name and value pairs: aligned on a terminal, tab-separated in a pipe."""
    shown = [(name, "" if value is None else str(value)) for name, value in facts]
    if not is_terminal():
        for name, value in shown:
            click.echo(f"{name}\t{' '.join(value.split())}")
        return
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        click.echo(f"{click.style(name.ljust(width), bold=_color())}  {value}")


def note(message: str) -> None:
    """Write a line for people to stderr, unless ``-q`` was given."""
    from vcr_core.cli.options import is_quiet

    if not is_quiet():
        click.echo(message, err=True)


def _color() -> bool:
    import os

    return not os.environ.get("NO_COLOR")
