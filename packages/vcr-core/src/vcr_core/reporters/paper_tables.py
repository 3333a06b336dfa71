"""Published tables with our numbers under them, as Markdown, LaTeX, CSV or a page."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vcr_core.__about__ import __version__
from vcr_core.errors import UsageError
from vcr_core.paper.layout import PAPER, Group, Head, Line, PaperTable
from vcr_core.paper.table2 import table2
from vcr_core.paper.table3 import table3
from vcr_core.reporters import latex, markdown
from vcr_core.reporters.cells import MISSING, Cell, one_line

if TYPE_CHECKING:
    from vcr_core.summary import RunView

TEMPLATES: dict[str, Callable[..., PaperTable]] = {"paper-table2": table2, "paper-table3": table3}
"""What ``vcr report --template`` takes."""


def paper_table(template: str, runs: Sequence[RunView], *, own_rows: bool = False) -> PaperTable:
    """Return a published table, filled.

    Raises:
        UsageError: for a template that there is not.
    """
    if template not in TEMPLATES:
        raise UsageError(f"no template is called {template!r}; there are: {', '.join(TEMPLATES)}")
    return TEMPLATES[template](runs, own_rows=own_rows)


def table_text(table: PaperTable, form: str) -> str:
    """Return a table in a form of :data:`FORMS`.

    Raises:
        UsageError: for another form.
    """
    if form not in FORMS:
        raise UsageError(f"a paper table is not written as {form!r}; use {', '.join(FORMS)}")
    return FORMS[form](table)


def _rows(table: PaperTable) -> Iterator[tuple[str, str, list[str]]]:
    """Yield row, source and cells as text; the row's name stands on its first line alone."""
    for group in table.groups:
        name = group.row
        if group.published:
            yield name, PAPER, [_published(group, head) for head in table.heads]
            name = ""
        for line in group.lines:
            yield name, line.source, [_ours(line, head) for head in table.heads]
            name = ""


def _published(group: Group, head: Head) -> str:
    numbers = group.published.get(head.key, ())
    factor = 100 if head.is_rate else 1
    return " / ".join(f"{factor * n:.{head.decimals}f}" for n in numbers) or MISSING


def _ours(line: Line, head: Head) -> str:
    cells = line.cells.get(head.key, ())
    if all(cell.value is None for cell in cells):
        return MISSING
    return " / ".join(cell.both for cell in cells)


def _markdown(table: PaperTable) -> str:
    lines = [f"# {table.title}", ""]
    titles = [table.label, "Source", *(head.title for head in table.heads)]
    lines.append("| " + " | ".join(map(markdown.escape, titles)) + " |")
    lines.append("| --- | --- |" + " ---: |" * len(table.heads))
    for name, source, cells in _rows(table):
        lines.append(f"| {markdown.escape(name)} | {source} | {' | '.join(cells)} |")
    lines += ["", "Brackets hold 95 % intervals over videos."]
    for note in table.notes:
        lines += ["", markdown.escape(note)]
    lines.append("")
    lines += [f"- check: {markdown.escape(check)}" for check in table.checks]
    return "\n".join(lines).rstrip() + "\n"


def _latex(table: PaperTable) -> str:
    titles = [table.label, "Source", *(head.title for head in table.heads)]
    lines = [" & ".join(map(latex.escape, titles)) + r" \\", r"\midrule"]
    for name, source, cells in _rows(table):
        if name and len(lines) > 2:
            lines.append(r"\addlinespace")
        texts = [latex.escape(name), source]
        # Braces: a bracket at the start of a line would be taken for an argument of the line end.
        texts += [f"{{{latex.escape(cell)}}}".replace(MISSING, latex.MISSING) for cell in cells]
        lines.append(" & ".join(texts) + r" \\")
    notes = " ".join(latex.escape(note) for note in ("Brackets: 95 % intervals.", *table.notes))
    head = "% needs \\usepackage{booktabs} and \\usepackage{graphicx}\n"
    checks = "".join(f"% check: {one_line(check)}\n" for check in table.checks)
    return head + checks + "\n".join([
        r"\begin{table*}", r"\centering", r"\small",
        rf"\caption{{{latex.escape(table.title)}. {notes}}}",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{ll{'r' * len(table.heads)}}}", r"\toprule", *lines, r"\bottomrule",
        r"\end{tabular}}", r"\end{table*}", "",
    ])  # fmt: skip


def _csv(table: PaperTable) -> str:
    """Return one line a number: the paper's and ours beside it; rates are fractions."""
    buffer = io.StringIO()
    names = ["table", "row", "source", "column", "quantity", "paper", "ours", "low", "high", "n",
             "comparable", "runs", "missing"]  # fmt: skip
    writer = csv.DictWriter(buffer, names, lineterminator="\n")
    writer.writeheader()
    for group in table.groups:
        for line in group.lines:
            for head in table.heads:
                for i, quantity in enumerate(head.quantities):
                    writer.writerow(
                        {
                            "table": table.name,
                            "row": group.row,
                            "quantity": quantity,
                            **_numbers(group, line, head, i),
                        }
                    )
    return buffer.getvalue()


def _numbers(group: Group, line: Line, head: Head, index: int) -> Mapping[str, Any]:
    published = group.published.get(head.key)
    cell: Cell = line.cells[head.key][index]
    runs = line.runs.get(head.key, ())
    return {
        "source": line.source,
        "column": head.key,
        "paper": _number(published[index] if published else None),
        "ours": _number(cell.value),
        "low": _number(cell.low),
        "high": _number(cell.high),
        "n": "" if cell.n is None else cell.n,
        "comparable": "yes" if line.comparable else "no",
        "runs": " ".join(run.name for run in runs),
        "missing": cell.reason,
    }


def _number(value: float | None) -> str:
    return "" if value is None else repr(round(value, 6))


def _html(table: PaperTable) -> str:
    """Return one page that needs nothing but a browser, in the style of the report."""
    from vcr_core.reporters.html import report_environment

    template = report_environment().get_template("paper.html")
    return template.render(table=table, rows=list(_rows(table)), version=__version__)


FORMS: dict[str, Callable[[PaperTable], str]] = {
    "md": _markdown, "latex": _latex, "csv": _csv, "html": _html,
}  # fmt: skip
"""Forms of a paper table, by the words that ``--format`` takes."""
