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
from vcr_core.reporters.detection_table import TITLE as DETECTION
from vcr_core.reporters.detection_table import detection_report
from vcr_core.reporters.extras import extra_legends
from vcr_core.reporters.matrix import Duel, Matrix, Score, matrices
from vcr_core.reporters.models_table import MODELS_LEGEND, ModelsTable, models_tables
from vcr_core.reporters.robustness import robustness_report
from vcr_core.reporters.robustness_text import markdown_lines
from vcr_core.reporters.rows import Row, paired_rows
from vcr_core.reporters.transfer_matrix import TITLE as TRANSFER
from vcr_core.reporters.transfer_matrix import transfer_report

if TYPE_CHECKING:
    from vcr_core.summary import RunView

_SPECIAL = str.maketrans(
    {c: f"\\{c}" for c in "\\`*_[]|~#"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;", "\n": " "}
)


class MarkdownReporter:
    """Writes a table a dataset with its notes, and whatever else the runs have to be compared by.

    Attributes:
        reference: model that corruption errors are divided by, ``""`` for none.
    """

    details = False
    """See :class:`vcr_core.protocols.Reporter`."""

    reference: str = ""

    def text(self, runs: Sequence[RunView]) -> str:
        """Return the report."""
        ordered = paired_rows(runs)
        rows = [row for row, _ in ordered]
        lines = ["# Robustness report", ""]
        for dataset in sorted({row.dataset for row in rows}):
            members = [row for row in rows if row.dataset == dataset]
            lines += [f"## {escape(dataset)}", "", *_table(members), ""]
        robustness = robustness_report(ordered, self.reference)
        if robustness is not None:
            lines += markdown_lines(robustness, escape)
        detection = detection_report(ordered)
        if detection is not None:
            lines += markdown_lines(detection, escape, DETECTION)
        transfer = transfer_report(ordered)
        if transfer is not None:
            lines += markdown_lines(transfer, escape, TRANSFER)
        for table in models_tables(ordered):
            lines += [f"## {escape(table.title)}", "", *_models(table), ""]
        found = matrices(ordered)
        if found:
            lines += ["## Defenses against attacks", ""]
        for matrix in found:
            lines += [f"### {escape(matrix.title)}", "", *_matrix(matrix), ""]
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
    for legend in extra_legends(rows):
        lines += ["", legend]
    reasons = missing_reasons(rows, columns)
    if reasons:
        lines += ["", f"{MISSING} stands for a missing number:", ""]
        lines += [f"- {escape(reason)}" for reason in reasons]
    if notes:
        lines.append("")
        lines += [f"[^{note.number}]: `{_code(note.flag)}`: {note.text}" for note in notes]
    return lines


def _models(table: ModelsTable) -> list[str]:
    titles = [table.corner, *(", ".join(filter(None, head)) for head in table.heads)]
    lines = [
        "| " + " | ".join(map(escape, titles)) + " |",
        "| --- |" + " ---: |" * len(table.heads),
    ]
    for line in table.lines:
        name = escape(", ".join(filter(None, (line.name, line.under))))
        cells = [c.both if isinstance(c, Cell) else _score(c) for c in line.cells]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return [*lines, "", MODELS_LEGEND]


def _matrix(matrix: Matrix) -> list[str]:
    kinds = [
        kind
        for kind, has in (("unaware", matrix.has_unaware), ("adaptive", matrix.has_adaptive))
        if has
    ]
    titles = ["Defense", "Clean %"]
    titles += [f"{attack}, {threat}, {kind}" for attack, threat in matrix.attacks for kind in kinds]
    lines = [
        "| " + " | ".join(map(escape, titles)) + " |",
        "| --- |" + " ---: |" * (len(titles) - 1),
    ]
    for line in matrix.lines:
        texts = [escape(line.defense), line.clean.both]
        for duel in line.duels:
            texts += [_score(_met(duel, kind, bare=line.is_bare)) for kind in kinds]
        lines.append("| " + " | ".join(texts) + " |")
    for text in matrix.legends:
        lines += ["", text]
    return lines


def _met(duel: Duel, kind: str, *, bare: bool) -> Score | None:
    """Return the score to show; without a defense both kinds of attack are the same one."""
    return duel.adaptive if kind == "adaptive" and not bare else duel.unaware


def _score(score: Score | None) -> str:
    if score is None:
        return MISSING
    accuracy = f"**{score.accuracy.text}**" if score.lower else score.accuracy.text
    mark = "†" if score.reversed else ""
    return f"{accuracy}{mark} {score.accuracy.interval} / {score.asr.text} {score.asr.interval}"


def _cell(column: Column, row: Row) -> str:
    value = column.get(row)
    if not isinstance(value, Cell):
        return escape(value)
    text = f"**{value.text}**" if column.headline(row) and value.value is not None else value.text
    return f"{text} {value.interval}".rstrip()


def _code(text: str) -> str:
    return text.replace("`", "'").replace("\n", " ")
