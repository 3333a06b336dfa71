"""``vcr report``: results as a table in the terminal or as a page, from records alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vcr_core.cli.output import emit_json, json_option, note
from vcr_core.errors import ComponentUnavailable, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vcr_core.summary import RunView

_BY_SUFFIX = {
    ".html": "html", ".htm": "html", ".md": "md", ".csv": "csv", ".tex": "latex",
}  # fmt: skip


@click.command("report", epilog="Example: vcr report results --format html")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--format",
    "format_",
    metavar="FORMAT",
    help="terminal (default), html, md, latex, csv, or one that a plugin brings.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    help="File to write. Without it html goes to report.html in PATH, all others to stdout.",
)
@json_option
def command(
    paths: tuple[str, ...], format_: str | None, output: Path | None, as_json: bool
) -> None:
    """Show results: one row per run, every number with its 95 % interval.

    PATH is a run folder or a folder that contains run folders. Nothing is evaluated: all numbers
    are computed from the records, so runs that are still going on can be shown too.
    """
    if as_json and (format_ or output):
        raise UsageError("--json prints to stdout and takes neither --format nor --output")
    if as_json:
        emit_json({"schema": 1, "runs": _plain(_load(paths))})
        return
    chosen = format_ or (_BY_SUFFIX.get(output.suffix.lower(), "") if output else "terminal")
    if not chosen:
        raise UsageError(f"{output}: say with --format what to write; the suffix does not tell")
    reporter = _reporter(chosen)
    runs = _load(paths)
    if output is None and chosen == "terminal":
        reporter.show(runs, sys.stdout)
        return
    if output is None and chosen in ("md", "csv", "latex"):
        click.echo(reporter.text(runs), nl=False)
        return
    target = output or _beside(paths, chosen)
    for path in reporter.render(runs, target):
        click.echo(str(path))


def _load(paths: Sequence[str]) -> list[RunView]:
    from vcr_core.summary import find_runs, load_run

    folders: dict[Path, None] = {}
    for path in paths:
        found = find_runs(path) if Path(path).exists() else None
        if found is None:
            raise UsageError(f"{path}: no such folder")
        if not found:
            raise UsageError(f"{path}: there is no run in it; a run folder holds a run.json")
        folders.update(dict.fromkeys(folder.resolve() for folder in found))
    runs = [load_run(folder) for folder in folders]
    empty = sum(not run.records for run in runs)
    if empty:
        note(f"{empty} of {len(runs)} runs have no records yet")
    return runs


def _reporter(name: str) -> Any:
    """Return the reporter of a format; formats of plugins are found in the registry.

    Raises:
        UsageError: if nothing installed writes that format.
        ComponentUnavailable: if the reporter's requirements are missing.
    """
    from vcr_core.availability import availability
    from vcr_core.components import load_attr
    from vcr_core.plugins import registry

    entries = [e for e in registry().entries("reporter") if _format(e.spec) == name]
    if not entries:
        known = sorted({_format(entry.spec) for entry in registry().entries("reporter")})
        raise UsageError(f"no reporter writes {name!r}; there are: {', '.join(known)}")
    if len(entries) > 1:
        offers = ", ".join(entry.qualified for entry in entries)
        raise UsageError(f"several reporters write {name!r}: {offers}; disable all but one")
    entry = entries[0]
    state = availability(entry.spec)
    if not state.ok:
        raise ComponentUnavailable(
            f"format {name!r} is not available: it {state.text}; "
            f"pip install '{entry.spec.extra or entry.distribution}'"
        )
    return load_attr(entry.spec.target, entry)()


def _format(spec: Any) -> str:
    return str(spec.format or spec.name)


def _beside(paths: Sequence[str], name: str) -> Path:
    first = Path(paths[0])
    folder = first if first.is_dir() else first.parent
    return folder / f"report.{name}"


def _plain(runs: Sequence[RunView]) -> list[dict[str, Any]]:
    from vcr_core.reporters.flat import flat_rows
    from vcr_core.reporters.rows import make_rows

    plain = flat_rows(make_rows(runs))
    return [{**row, "flags": row["flags"].split()} for row in plain]
