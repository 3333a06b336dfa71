r"""Tables for papers, in LaTeX with the packages ``booktabs`` and ``multirow``.

Where defenses meet attacks, every model has a table in the layout of Table 3 of VCR-Bench; where
several models met several attacks without a defense, there is one of them. Else the runs are
listed, one a line. The text is a fragment: ``\input`` it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vcr_core.atomic import write_text
from vcr_core.reporters import target_file
from vcr_core.reporters.cells import Cell
from vcr_core.reporters.columns import LEGEND, reading_columns
from vcr_core.reporters.detection_table import detection_report
from vcr_core.reporters.matrix import Matrix, Score, matrices
from vcr_core.reporters.models_table import MODELS_LEGEND, ModelsTable, models_tables
from vcr_core.reporters.robustness import robustness_report
from vcr_core.reporters.robustness_text import latex_tables
from vcr_core.reporters.rows import Row, paired_rows
from vcr_core.reporters.transfer_matrix import transfer_report

if TYPE_CHECKING:
    from vcr_core.summary import RunView

MISSING = "--"
_SPECIAL = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {
        "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
        "<": r"\textless{}", ">": r"\textgreater{}", "∞": r"$_\infty$", "→": r"$\to$",
        "†": r"\textdagger{}", "²": r"\textsuperscript{2}", "\n": " ",
    }
)  # fmt: skip


class LatexReporter:
    """Writes tables of models and defenses against attacks, or of runs where there are none.

    Where natural shifts, corruptions or tampering were evaluated, their tables follow.

    Attributes:
        reference: model that corruption errors are divided by, ``""`` for none.
    """

    details = False
    """See :class:`vcr_core.protocols.Reporter`."""

    reference: str = ""

    def text(self, runs: Sequence[RunView]) -> str:
        """Return the tables."""
        ordered = paired_rows(runs)
        found = matrices(ordered)
        tables = [_models(table) for table in models_tables(ordered)]
        tables += [_matrix(matrix) for matrix in found]
        tables = tables or [_runs([row for row, _ in ordered])]
        robustness = robustness_report(ordered, self.reference)
        if robustness is not None:
            tables += latex_tables(robustness, escape)
        detection = detection_report(ordered)
        if detection is not None:
            tables += latex_tables(detection, escape)
        transfer = transfer_report(ordered)
        if transfer is not None:
            tables += latex_tables(transfer, escape)
        head = "% needs \\usepackage{booktabs} and \\usepackage{multirow}\n"
        return head + "\n".join(tables)

    def render(self, runs: Sequence[RunView], out: Path) -> Sequence[Path]:
        """Write the tables to ``out`` (a file, or a folder to put it in); return its path."""
        path = target_file(out, "report.tex")
        write_text(path, self.text(runs))
        return [path]


def escape(text: str) -> str:
    r"""Return text that LaTeX shows as it is.

    Example:
        >>> escape("a_b 50 % L∞")
        'a\\_b 50 \\% L$_\\infty$'
    """
    return text.translate(_SPECIAL)


def _matrix(matrix: Matrix) -> str:
    both = matrix.has_unaware and matrix.has_adaptive
    width = 2 if both else 1
    places = range(len(matrix.attacks))
    heads = [
        rf"\multicolumn{{{width}}}{{c}}{{{escape(attack)}, {escape(threat)}}}"
        for attack, threat in matrix.attacks
    ]
    over = (
        r"\multirow{2}{*}{Defense} & \multirow{2}{*}{Clean \%}" if both else r"Defense & Clean \%"
    )
    lines = [" & ".join([over, *heads]) + r" \\"]
    if both:
        rules = "".join(rf"\cmidrule(lr){{{3 + 2 * i}-{4 + 2 * i}}}" for i in places)
        lines += [rules, " & ".join(["", "", *["unaware & adaptive" for _ in places]]) + r" \\"]
    lines.append(r"\midrule")
    for line in matrix.lines:
        cells = [escape(line.defense), _number(line.clean)]
        for duel in line.duels:
            if line.is_bare:
                score = _score(duel.unaware)
                cells.append(rf"\multicolumn{{2}}{{c}}{{{score}}}" if both else score)
            elif both:
                cells += [_score(duel.unaware), _score(duel.adaptive)]
            else:
                cells.append(_score(duel.unaware or duel.adaptive))
        lines.append(" & ".join(cells) + r" \\")
    return _table("l" + "r" * (1 + width * len(heads)), lines, [matrix.title, *matrix.legends])


def _models(table: ModelsTable) -> str:
    heads = [escape(", ".join(filter(None, head))) for head in table.heads]
    lines = [" & ".join([table.corner, *heads]) + r" \\", r"\midrule"]
    for line in table.lines:
        name = escape(", ".join(filter(None, (line.name, line.under))))
        cells = [_number(c) if isinstance(c, Cell) else _score(c) for c in line.cells]
        lines.append(" & ".join([name, *cells]) + r" \\")
    return _table("l" + "r" * len(heads), lines, [table.title, MODELS_LEGEND])


def _runs(rows: Sequence[Row]) -> str:
    columns = reading_columns(rows)
    lines = [" & ".join(escape(column.title) for column in columns) + r" \\", r"\midrule"]
    for row in rows:
        values = [column.get(row) for column in columns]
        cells = [_number(v) if isinstance(v, Cell) else escape(v) for v in values]
        lines.append(" & ".join(cells) + r" \\")
    shape = "".join("r" if column.numeric else "l" for column in columns)
    return _table(shape, lines, ["Runs", LEGEND])


def _table(shape: str, lines: Sequence[str], caption: Sequence[str]) -> str:
    title, *legends = (escape(text) for text in caption)
    return "\n".join([
        r"\begin{table}", r"\centering", r"\small",
        rf"\caption{{{title}. {' '.join(legends)}}}",
        rf"\begin{{tabular}}{{{shape}}}", r"\toprule", *lines, r"\bottomrule",
        r"\end{tabular}", r"\end{table}", "",
    ])  # fmt: skip


def _score(score: Score | None) -> str:
    if score is None:
        return MISSING
    mark = r"\textdagger{}" if score.reversed else ""
    accuracy = _number(score.accuracy, bold=score.lower)
    return f"{accuracy}{mark} / {_number(score.asr)}"


def _number(cell: Cell, *, bold: bool = False) -> str:
    if cell.value is None:
        return MISSING
    text = rf"\textbf{{{cell.text}}}" if bold else cell.text
    # Braces: a bracket at the start of a line would be taken for an argument of the line end.
    return rf"{text} {{\scriptsize {cell.interval}}}" if cell.interval else text
