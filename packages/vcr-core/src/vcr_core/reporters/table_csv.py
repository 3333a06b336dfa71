"""One row per run as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vcr_core.atomic import write_text
from vcr_core.reporters import target_file
from vcr_core.reporters.flat import delimited
from vcr_core.reporters.rows import make_rows

if TYPE_CHECKING:
    from vcr_core.summary import RunView


class CsvReporter:
    """Writes a comma-separated table with a header; missing numbers are empty cells."""

    details = False
    """See :class:`vcr_core.protocols.Reporter`."""

    def text(self, runs: Sequence[RunView]) -> str:
        """Return the table."""
        return delimited(make_rows(runs), delimiter=",", missing="")

    def render(self, runs: Sequence[RunView], out: Path) -> Sequence[Path]:
        """Write the table to ``out`` (a file, or a folder to put it in); return its path."""
        path = target_file(out, "report.csv")
        write_text(path, self.text(runs))
        return [path]
