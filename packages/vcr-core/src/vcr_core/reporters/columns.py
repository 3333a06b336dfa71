"""The columns of tables made for reading; the same in the terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from vcr_core.health_text import explain_flag
from vcr_core.reporters.cells import NO_DEFENSE, NOT_PART, Cell
from vcr_core.reporters.extras import EXTRA_TITLES, extra_names
from vcr_core.reporters.rows import NONE, Row, metric_cell, metric_names
from vcr_core.reporters.wording import metric_title

_WORDS = frozenset({"Model", "Dataset", "Attack", "Defense", "Adaptive", "Threat", "Run"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column.

    Attributes:
        title: heading, with the unit.
        get: text, or a number with its interval.
        headline: whether this cell is the result of the run, by row.
    """

    title: str
    get: Callable[[Row], str | Cell]
    headline: Callable[[Row], bool] = lambda _: False

    @property
    def numeric(self) -> bool:
        """Whether the column is set flush right."""
        return self.title not in _WORDS


def reading_columns(rows: Sequence[Row]) -> list[Column]:
    """Return the columns that say something about ``rows``."""
    columns = [
        Column(title="Model", get=lambda r: r.model),
        Column(title="Attack", get=lambda r: r.attack_text),
    ]
    if len({row.dataset for row in rows}) > 1:
        columns.insert(1, Column(title="Dataset", get=lambda r: r.dataset))
    if any(row.defense != NONE for row in rows):
        columns += [
            Column(title="Defense", get=lambda r: r.defense),
            Column(title="Adaptive", get=lambda r: r.adaptive_text),
        ]
    columns += [
        Column(title="Threat", get=lambda r: r.threat),
        Column(title="n", get=lambda r: str(r.n)),
        Column(title="Errors", get=lambda r: str(r.errors)),
        *accuracy_columns(rows),
    ]
    if any(row.attack != NONE for row in rows):
        columns += [
            Column(title="ASR %", get=lambda r: r.asr),
            Column(title="Queries", get=lambda r: r.queries),
        ]
    columns += [extra_column(name) for name in extra_names(rows)]
    return columns + [metric_column(name) for name in metric_names(rows)]


def compact_columns(rows: Sequence[Row]) -> list[Column]:
    """Return the columns of :func:`reading_columns` with all words in one, for narrow places."""
    columns = reading_columns(rows)
    numbers = [c for c in columns if c.numeric and c.title not in ("n", "Errors")]
    return [
        Column(title="Run", get=_about),
        Column(title="n", get=lambda r: f"{r.n}\n{r.errors} failed" if r.errors else str(r.n)),
        *numbers,
    ]


def headline_columns(rows: Sequence[Row]) -> list[Column]:
    """Return compact columns with one pair of accuracies a run, that of its result."""
    pairs = {column.title for column in accuracy_columns(rows)}
    about, n, *numbers = compact_columns(rows)
    return [
        about,
        n,
        Column(title="Clean %", get=lambda r: r.headline.clean, headline=lambda _: True),
        Column(title="Robust %", get=lambda r: r.headline.robust, headline=lambda _: True),
        *(column for column in numbers if column.title not in pairs),
    ]


def _about(row: Row) -> str:
    """Return model, attack and defense, a line each."""
    lines = [row.model]
    lines.append(f"{row.attack_text}, {row.threat}" if row.attack != NONE else "no attack")
    if row.defense != NONE:
        known = {True: ", adaptive", False: ", attack unaware", None: ""}[row.adaptive]
        lines.append(row.defense + known)
    return "\n".join(lines)


def accuracy_columns(rows: Sequence[Row]) -> list[Column]:
    """Return the accuracy columns: those behind the defense only where a run has one."""
    absent = Cell(reason=NO_DEFENSE, share=True)

    def bare(row: Row) -> bool:
        return not row.headline_defended

    columns = [
        Column(title="Clean %", get=lambda r: r.undefended.clean, headline=bare),
        Column(title="Robust %", get=lambda r: r.undefended.robust, headline=bare),
    ]
    if any(row.defended for row in rows):
        columns += [
            Column(
                title="Defended clean %",
                get=lambda r: r.defended.clean if r.defended else absent,
                headline=lambda r: r.headline_defended,
            ),
            Column(
                title="Defended robust %",
                get=lambda r: r.defended.robust if r.defended else absent,
                headline=lambda r: r.headline_defended,
            ),
        ]
    return columns


def metric_column(name: str) -> Column:
    """Return the column of one metric."""
    return Column(title=metric_title(name), get=lambda r: metric_cell(r, name))


def extra_column(name: str) -> Column:
    """Return the column of a number that only some runs have."""
    absent = Cell(reason=NOT_PART)
    return Column(title=EXTRA_TITLES[name], get=lambda r: r.extras.get(name, absent))


@dataclass(frozen=True, slots=True, kw_only=True)
class Footnote:
    """A numbered note under a table."""

    number: int
    flag: str
    text: str


def footnotes(rows: Sequence[Row]) -> list[Footnote]:
    """Return a note per health flag that occurs, numbered from 1 in alphabetical order."""
    flags = sorted({flag for row in rows for flag in row.flags})
    return [Footnote(number=i, flag=f, text=explain_flag(f)) for i, f in enumerate(flags, 1)]


def missing_reasons(rows: Sequence[Row], columns: Sequence[Column]) -> list[str]:
    """Return why numbers are missing, one line per column and reason with the runs it concerns.

    A number that would mean nothing, as that of a defense that a run does not have, is not missing.
    """
    counts: dict[tuple[str, str], int] = {}
    for column in columns:
        for row in rows:
            cell = column.get(row)
            if isinstance(cell, Cell) and cell.is_missing:
                key = (column.title, cell.reason)
                counts[key] = counts.get(key, 0) + 1
    return [
        f"{title}: {reason} ({count} run{'s' if count > 1 else ''})"
        for (title, reason), count in counts.items()
    ]


LEGEND = (
    "Brackets hold 95 % intervals. n: videos in the rates; errors are videos that failed and are "
    "not in them."
)
LEGEND_HEADLINE = (
    "The accuracies are those of the defended model where the attack knows the defense, else "
    "those of the bare model; a wider terminal shows both."
)
LEGEND_DEFENDED = (
    "Where the attack knows the defense, the defended pair is the result; the undefended pair "
    "then says how the bare model fares on clips made against the defended one."
)
