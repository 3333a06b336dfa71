"""The HTML report: one file that needs nothing but a browser."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core.__about__ import __version__
from vcr_core.atomic import write_text
from vcr_core.errors import ComponentUnavailable
from vcr_core.reporters import target_file
from vcr_core.reporters.cells import MISSING
from vcr_core.reporters.columns import (
    LEGEND,
    LEGEND_DEFENDED,
    footnotes,
    missing_reasons,
    reading_columns,
)
from vcr_core.reporters.details import run_details
from vcr_core.reporters.environments import environments
from vcr_core.reporters.extras import extra_legends
from vcr_core.reporters.flat import delimited
from vcr_core.reporters.gallery import MAX_CLIPS
from vcr_core.reporters.remarks import remarks
from vcr_core.reporters.rows import NONE, Row, paired_rows
from vcr_core.reporters.sections import Options, further_sections
from vcr_core.reporters.wording import SYMBOLS

if TYPE_CHECKING:
    from jinja2 import Environment

    from vcr_core.summary import RunView


class HtmlReporter:
    """Writes one self-contained page: no network, no other files.

    Attributes:
        reference: model that corruption errors are divided by, ``""`` for none.
        clips: how many kept clips to show at most.
    """

    details = False
    """See :class:`vcr_core.protocols.Reporter`."""

    def __init__(self) -> None:
        """Take what the command line does without options."""
        self.reference = ""
        self.clips = MAX_CLIPS

    def text(self, runs: Sequence[RunView]) -> str:
        """Return the page.

        Raises:
            ComponentUnavailable: when jinja2 is missing, or Pillow and there are clips to show.
        """
        environment = report_environment()
        template = environment.get_template("page.html")
        options = Options(reference=self.reference, clips=self.clips)
        return template.render(_context(paired_rows(runs), options))

    def render(self, runs: Sequence[RunView], out: Path) -> Sequence[Path]:
        """Write the page to ``out`` (a file, or a folder to put it in); return its path."""
        path = target_file(out, "report.html")
        write_text(path, self.text(runs))
        return [path]


def _context(ordered: Sequence[tuple[Row, RunView]], options: Options) -> dict[str, Any]:
    rows = [row for row, _ in ordered]
    columns = reading_columns(rows)
    notes = footnotes(rows)
    machines = environments(ordered)
    return {
        "title": "Robustness report",
        "version": __version__,
        "missing": MISSING,
        "rows": rows,
        "columns": columns,
        "rows_by_run": {row.run: row for row in rows},
        "anchors": {row.run: f"run-{i}" for i, row in enumerate(rows, 1)},
        "facts": _facts(rows, [run for _, run in ordered]),
        "remarks": remarks(ordered),
        "filters": _filters(rows),
        "legend": LEGEND,
        "legend_defended": LEGEND_DEFENDED if any(row.defended for row in rows) else "",
        "reasons": missing_reasons(rows, columns),
        "note_numbers": {note.flag: note.number for note in notes},
        "sections": further_sections(ordered, options),
        "symbols": SYMBOLS,
        "extra_legends": extra_legends(rows),
        "environments": machines,
        "environment_of": {run: one.number for one in machines for run in one.runs},
        "details": [run_details(run, row) for row, run in ordered],
        "csv": delimited(rows, delimiter=",", missing=""),
    }


def _facts(rows: Sequence[Row], runs: Sequence[RunView]) -> list[tuple[str, str]]:
    """Return what the page is about, in a line."""

    def distinct(values: set[str], noun: str) -> tuple[str, str]:
        values.discard(NONE)
        few = ", ".join(sorted(values))
        if len(values) == 1:
            return noun, few
        return f"{len(values)} {noun}s", few if len(values) <= 4 else "see the table"

    videos = sorted({row.n + row.errors for row in rows})
    span = f"{videos[0]}" if len(videos) == 1 else f"{videos[0]} to {videos[-1]}" if videos else "0"
    ended = sorted(str(run.manifest["ended"]) for run in runs if run.manifest.get("ended"))
    facts = [
        distinct({row.dataset for row in rows}, "dataset"),
        distinct({row.model for row in rows}, "model"),
        distinct({row.attack for row in rows}, "attack"),
        distinct({row.defense for row in rows}, "defense"),
        ("runs", str(len(rows))),
        ("videos a run", span),
    ]
    if ended:
        facts.append(("last run ended", f"{ended[-1][:16].replace('T', ' ')} UTC"))
    return [(name, value) for name, value in facts if value]


def _filters(rows: Sequence[Row]) -> list[tuple[str, str, list[str]]]:
    """Return choices to filter by: key, title, values; only where there is a choice."""
    choices = [
        ("model", "Model", {row.model for row in rows}),
        ("attack", "Attack", {row.attack_text for row in rows}),
        ("defense", "Defense", {row.defense for row in rows}),
        ("threat", "Threat", {row.threat for row in rows}),
    ]
    order = {row.threat: (row.norm, row.eps or 0.0) for row in rows}
    return [
        (key, title, sorted(values, key=lambda v: (order.get(v, ("", 0.0)), v)))
        for key, title, values in choices
        if len(values) > 1
    ]


def report_environment() -> Environment:
    """Return the templates of reports, which escape everything but our own style and script."""
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise ComponentUnavailable(
            f"the HTML report needs {error.name}: pip install 'vcr-core[report]'"
        ) from error
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(_resource),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # Style and script are ours and hold no data; everything else on the page is escaped.
    script = "".join(_resource(name) for name in ("script.js", "videos.js"))
    environment.globals["style"] = Markup(_resource("style.css"))  # noqa: S704
    environment.globals["script"] = Markup(script)  # noqa: S704
    # A browser runs the script with this hash and no other, whatever data may contain.
    digest = hashlib.sha256(script.encode()).digest()
    environment.globals["script_hash"] = f"sha256-{base64.b64encode(digest).decode()}"
    return environment


def _resource(name: str) -> str:
    return files("vcr_core").joinpath("templates", "report", name).read_text(encoding="utf-8")
