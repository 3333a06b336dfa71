"""The HTML report: one file that needs nothing but a browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core.__about__ import __version__
from vcr_core.atomic import write_text
from vcr_core.errors import ComponentUnavailable
from vcr_core.reporters import target_file
from vcr_core.reporters.cells import MISSING
from vcr_core.reporters.charts import bar_panels, curve_panels
from vcr_core.reporters.columns import (
    LEGEND,
    LEGEND_DEFENDED,
    footnotes,
    missing_reasons,
    reading_columns,
)
from vcr_core.reporters.details import run_details
from vcr_core.reporters.extras import certificate_scope, extra_legends
from vcr_core.reporters.flat import delimited
from vcr_core.reporters.guarantees import certified_panels
from vcr_core.reporters.matrix import matrices
from vcr_core.reporters.remarks import remarks
from vcr_core.reporters.rows import NONE, Row, paired_rows
from vcr_core.reporters.strips import Strip, choose_frames, kept_clips, make_strip
from vcr_core.reporters.wording import SYMBOLS

if TYPE_CHECKING:
    from jinja2 import Environment

    from vcr_core.summary import RunView

MAX_STRIPS = 12
MAX_STRIP_BYTES = 12_000_000


class HtmlReporter:
    """Writes one self-contained page: no network, no other files."""

    def text(self, runs: Sequence[RunView]) -> str:
        """Return the page.

        Raises:
            ComponentUnavailable: when jinja2 is missing, or Pillow and there are clips to show.
        """
        environment = _environment()
        ordered = paired_rows(runs)
        rows = [row for row, _ in ordered]
        gallery = make_gallery([run for _, run in ordered])
        template = environment.get_template("page.html")
        return template.render(_context(rows, ordered, gallery))

    def render(self, runs: Sequence[RunView], out: Path) -> Sequence[Path]:
        """Write the page to ``out`` (a file, or a folder to put it in); return its path."""
        path = target_file(out, "report.html")
        write_text(path, self.text(runs))
        return [path]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gallery:
    """Strips that are shown, and how many clips were kept in all."""

    strips: tuple[Strip, ...]
    kept: int


def make_gallery(runs: Sequence[RunView]) -> Gallery:
    """Return strips of kept clips: the first of every run, then the second, up to a limit.

    Where a turn has more runs than there is room for, evenly spaced ones are taken. The choice
    depends on the order of runs and clips only, never on how an attack fared.
    """
    clips = [[(run, entry) for entry in kept_clips(run)] for run in runs]
    strips: list[Strip] = []
    size = 0
    for turn in range(max((len(found) for found in clips), default=0)):
        offered = [found[turn] for found in clips if turn < len(found)]
        for index in choose_frames(len(offered), MAX_STRIPS - len(strips)):
            strip = make_strip(*offered[index]) if size < MAX_STRIP_BYTES else None
            if strip is not None:
                strips.append(strip)
                size += sum(len(row.uri) for row in strip.rows)
    return Gallery(strips=tuple(strips), kept=sum(map(len, clips)))


def _context(
    rows: Sequence[Row], ordered: Sequence[tuple[Row, RunView]], gallery: Gallery
) -> dict[str, Any]:
    columns = reading_columns(rows)
    notes = footnotes(rows)
    series, curves = curve_panels(rows)
    certified_series, certified = certified_panels(ordered)
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
        "notes": notes,
        "note_numbers": {note.flag: note.number for note in notes},
        "matrices": matrices(ordered),
        "bars": bar_panels(rows),
        "symbols": SYMBOLS,
        "series": series,
        "curves": curves,
        "certified_series": certified_series,
        "certified": certified,
        "certified_note": certificate_scope([row.certificate for row in rows if row.certificate]),
        "extra_legends": extra_legends(rows),
        "gallery": gallery,
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


def _environment() -> Environment:
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
    environment.globals["style"] = Markup(_resource("style.css"))  # noqa: S704
    environment.globals["script"] = Markup(_resource("script.js"))  # noqa: S704
    return environment


def _resource(name: str) -> str:
    return files("vcr_core").joinpath("templates", "report", name).read_text(encoding="utf-8")
