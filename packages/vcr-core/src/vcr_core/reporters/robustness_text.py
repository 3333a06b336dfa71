"""Robustness tables as Markdown, as LaTeX and in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from vcr_core.reporters.cells import MISSING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as Drawn

    from vcr_core.reporters.robustness import RobustnessReport, Shown, Table

Escape: TypeAlias = Callable[[str], str]

_TITLE = "Robustness side by side"


def markdown_lines(report: RobustnessReport, escape: Escape, title: str = _TITLE) -> list[str]:
    """Return all tables in Markdown, under a title."""
    lines = [f"## {title}", ""]
    if report.note:
        return [*lines, report.note, ""]
    for table in report.side_by_side:
        lines += [f"### {escape(table.title)}", "", *_markdown(table, escape), ""]
    for chapter in report.chapters:
        lines += [f"## {escape(chapter.title)}", ""]
        for table in chapter.tables:
            lines += [f"### {escape(table.title)}", "", *_markdown(table, escape), ""]
    return lines


def _markdown(table: Table, escape: Escape) -> list[str]:
    beside = [table.context] if table.context else []
    titles = [table.rows, *beside, *(head.text for head in table.heads)]
    rule = ["---"] * (len(titles) - len(table.heads)) + ["---:"] * len(table.heads)
    lines = ["| " + " | ".join(map(escape, titles)) + " |", "| " + " | ".join(rule) + " |"]
    for line in table.lines:
        texts = [escape(line.name), *([escape(line.context)] if beside else [])]
        texts += [_flat(shown, escape) for shown in line.cells]
        lines.append("| " + " | ".join(texts) + " |")
    for note in table.notes:
        lines += ["", escape(note)]
    return lines


def _flat(shown: Shown, escape: Escape) -> str:
    word = f" ({escape(shown.word)})" if shown.word and shown.cell.value is not None else ""
    return f"{shown.cell.text} {shown.cell.interval}".rstrip() + word


def latex_tables(report: RobustnessReport, escape: Escape) -> list[str]:
    """Return the tables side by side and those of means, as LaTeX with ``booktabs``."""
    chosen = [(table.title, table) for table in report.side_by_side]
    chosen += [
        (f"{chapter.title}. {table.title}", table)
        for chapter in report.chapters
        for table in chapter.tables
        if not table.is_detail
    ]
    return [_latex(title, table, escape) for title, table in chosen]


def _latex(title: str, table: Table, escape: Escape) -> str:
    lines = []
    if table.groups:
        spans = [
            rf"\multicolumn{{{width}}}{{c}}{{{escape(group)}}}" for group, width in table.groups
        ]
        lines.append(" & ".join(["", *spans]) + r" \\")
    titles = [table.rows, *(head.title for head in table.heads)]
    lines += [" & ".join(map(escape, titles)) + r" \\", r"\midrule"]
    for line in table.lines:
        cells = [escape(line.name), *(_latex_cell(shown, escape) for shown in line.cells)]
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([
        r"\begin{table}", r"\centering", r"\small",
        rf"\caption{{{escape(title)}. {escape(' '.join(table.notes))}}}",
        rf"\begin{{tabular}}{{l{'r' * len(table.heads)}}}", r"\toprule", *lines, r"\bottomrule",
        r"\end{tabular}", r"\end{table}", "",
    ])  # fmt: skip


def _latex_cell(shown: Shown, escape: Escape) -> str:
    if shown.cell.value is None:
        return "--"
    # Braces: a bracket at the start of a line would be taken for an argument of the line end.
    parts = [shown.cell.text, f"{{\\scriptsize {shown.cell.interval}}}" * bool(shown.cell.interval)]
    parts.append(f"{{\\scriptsize {escape(shown.word)}}}" * bool(shown.word))
    return " ".join(filter(None, parts))


def draw(report: RobustnessReport, console: Console) -> None:
    """Draw the tables side by side and those of means; a table that is too wide is turned."""
    from rich.text import Text

    def say(text: str, style: str = "dim") -> None:
        console.print(Text(text, style=style))

    if report.note:
        say(report.note)
        return
    shown = [(table.title, table) for table in report.side_by_side]
    shown += [
        (f"{chapter.title}: {table.title[0].lower()}{table.title[1:]}", table)
        for chapter in report.chapters
        for table in chapter.tables
        if not table.is_detail
    ]
    for title, table in shown:
        console.print()
        say(title, "bold")
        console.print(_fitting(table, console))
        for note in table.notes:
            say(note)
    if any(table.is_detail for table in report.tables):
        say("Tables by type, severity and distance: --format md or --format html.")


def _fitting(table: Table, console: Console) -> Drawn:
    from rich.measure import Measurement

    forms = [
        _drawn(table, turned=turned, intervals=intervals)
        for turned, intervals in ((False, True), (True, True), (False, False), (True, False))
    ]
    options = console.options.update(max_width=100_000)
    for form in forms:
        if Measurement.get(console, options, form).maximum <= console.width:
            return form
    return forms[-1]


def _drawn(table: Table, *, turned: bool, intervals: bool) -> Drawn:
    """Return a table, or its transpose, with or without intervals under the numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as Drawn
    from rich.text import Text

    def text(shown: Shown) -> Text:
        if shown.cell.value is None:
            return Text(MISSING, style="dim")
        found = Text(shown.cell.text)
        if intervals and shown.cell.interval:
            found.append(f"\n{shown.cell.interval}", style="dim")
        if shown.word:
            found.append(f"\n{shown.word}", style="dim")
        return found

    rows: Sequence[tuple[str, Sequence[Shown]]] = [(line.name, line.cells) for line in table.lines]
    titles = [table.rows, *(head.text.replace(": ", "\n", 1) for head in table.heads)]
    if turned:
        titles = ["", *(line.name for line in table.lines)]
        rows = [
            (head.text, [line.cells[index] for line in table.lines])
            for index, head in enumerate(table.heads)
        ]
    drawn = Drawn(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for index, title in enumerate(titles):
        justify = "right" if index else "left"
        drawn.add_column(Text(title), justify=justify, no_wrap=bool(index), vertical="top")  # type: ignore[arg-type]
    for name, cells in rows:
        drawn.add_row(Text(name), *(text(shown) for shown in cells))
    return drawn
