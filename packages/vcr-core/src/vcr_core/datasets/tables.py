"""CSV files with a header, read as text with line numbers; nothing is guessed about values."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vcr_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """One row.

    Attributes:
        line: number of its last line in the file, from 1.
        values: column name to text. ``NA``, ``007`` or ``null`` stay what they are.
    """

    line: int
    values: dict[str, str]


@dataclass(frozen=True, slots=True)
class Table:
    """A CSV file.

    Attributes:
        path: full path, for messages.
        columns: header in lower case.
        rows: all rows that are not blank.
        comments: lines before the header that start with ``#``, without it.
    """

    path: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    comments: tuple[str, ...] = ()


def read_table(path: Path, required: Sequence[str]) -> Table:
    """Read a CSV file: UTF-8 with or without a byte order mark, any line ends, quoting, blanks.

    Blanks around a value are dropped unless quotes hold them at its start. Blank lines are ignored.

    Args:
        path: the file.
        required: columns that must exist, by name; their order is free.

    Raises:
        ConfigError: naming the file, and the line where there is one, of every problem.
    """
    name = str(path.absolute())
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name}: {error}") from error
    comments, body, skipped = _split_comments(text)
    reader = csv.reader(io.StringIO(body, newline=""), skipinitialspace=True, strict=True)
    columns: tuple[str, ...] = ()
    rows: list[Row] = []
    problems: list[str] = []
    try:
        for cells in reader:
            line = reader.line_num + skipped
            if not any(cell.strip() for cell in cells):
                continue
            if not columns:
                columns = tuple(cell.strip().lower() for cell in cells)
                _check_header(name, line, columns, required)
            elif len(cells) != len(columns):
                text = f"{len(cells)} values for {len(columns)} columns ({', '.join(columns)})"
                problems.append(f"{name}:{line}: {text}; quote values that hold a comma")
            else:
                values = {c: v.rstrip() for c, v in zip(columns, cells, strict=True)}
                rows.append(Row(line, values))
    except csv.Error as error:
        raise ConfigError(f"{name}:{reader.line_num + skipped}: {error}") from error
    if not columns:
        raise ConfigError(f"{name}: empty; expected a header with {', '.join(required)}")
    if problems:
        raise ConfigError(problems)
    return Table(name, columns, tuple(rows), comments)


def _split_comments(text: str) -> tuple[tuple[str, ...], str, int]:
    lines = text.splitlines(keepends=True)
    count = 0
    while count < len(lines) and lines[count].startswith("#"):
        count += 1
    comments = tuple(line[1:].strip() for line in lines[:count])
    return comments, "".join(lines[count:]), count


def _check_header(name: str, line: int, columns: Sequence[str], required: Sequence[str]) -> None:
    missing = [column for column in required if column not in columns]
    if missing:
        raise ConfigError(
            f"{name}:{line}: no column {', '.join(missing)} in the header, which is "
            f"{', '.join(columns)}"
        )
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise ConfigError(f"{name}:{line}: two columns are called {', '.join(twice)}")
