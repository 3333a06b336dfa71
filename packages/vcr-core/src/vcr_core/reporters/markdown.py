"""Tables in Markdown, for issues, papers in progress and READMEs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vcr_core.atomic import write_text
from vcr_core.reporters import target_file
from vcr_core.reporters.cells import MISSING, Cell
from vcr_core.reporters.columns import (
    LEGEND,
    LEGEND_DEFENDED,
    Column,
    footnotes,
    missing_reasons,
    reading_columns,
)
from vcr_core.reporters.rows import Row, make_rows

if TYPE_CHECKING:
    from vcr_core.summary import RunView

_SPECIAL = str.maketrans(
    {c: f"\\{c}" for c in "\\`*_[]|~#"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;", "\n": " "}
)


class MarkdownReporter:
    """Writes one table, its footnotes and the reasons of missing numbers."""

    def text(self, runs: Sequence[RunView]) -> str:
        """Return the report."""
        rows = make_rows(runs)
        lines = ["# Robustness report", ""]
        for dataset in sorted({row.dataset for row in rows}):
            members = [row for row in rows if row.dataset == dataset]
            lines += [f"## {escape(dataset)}", "", *_table(members), ""]
        return "\n".join(lines).rstrip() + "\n"

    def render(self, runs: Sequence[RunView], out: Path) -> Sequence[Path]:
        """Write the report to ``out`` (a file, or a folder to put it in); return its path."""
        path = target_file(out, "report.md")
        write_text(path, self.text(runs))
        return [path]


def escape(text: str) -> str:
    r"""Return text that Markdown shows as it is.

    Example:
        >>> escape("a|b <i>")
        'a\\|b &lt;i&gt;'
    """
    return text.translate(_SPECIAL)


def _table(rows: Sequence[Row]) -> list[str]:
    columns = reading_columns(rows)
    notes = footnotes(rows)
    numbers = {note.flag: note.number for note in notes}
    lines = [
        "| " + " | ".join(column.title for column in columns) + " |",
        "| " + " | ".join("---:" if column.numeric else "---" for column in columns) + " |",
    ]
    for row in rows:
        texts = [_cell(column, row) for column in columns]
        marks = "".join(f"[^{numbers[flag]}]" for flag in row.flags)
        texts[0] += marks
        lines.append("| " + " | ".join(texts) + " |")
    lines += ["", LEGEND]
    if any(row.defended for row in rows):
        lines += ["", f"{LEGEND_DEFENDED} The result is in bold."]
    reasons = missing_reasons(rows, columns)
    if reasons:
        lines += ["", f"{MISSING} stands for a missing number:", ""]
        lines += [f"- {escape(reason)}" for reason in reasons]
    if notes:
        lines.append("")
        lines += [f"[^{note.number}]: `{_code(note.flag)}`: {note.text}" for note in notes]
    return lines


def _cell(column: Column, row: Row) -> str:
    value = column.get(row)
    if not isinstance(value, Cell):
        return escape(value)
    text = f"**{value.text}**" if column.headline(row) and value.value is not None else value.text
    return f"{text} {value.interval}".rstrip()


def _code(text: str) -> str:
    return text.replace("`", "'").replace("\n", " ")
