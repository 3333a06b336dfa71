"""``vcr report``: results as a table in the terminal or as a page, from records alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vcr_core.cli.output import emit_json, json_option, note
from vcr_core.collector import collector_paused
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
@click.option(
    "--reference",
    metavar="MODEL",
    help="Model that corruption errors and flip rates are divided by; without it they are left "
    "out.",
)
@click.option(
    "--clips",
    type=click.IntRange(min=0),
    help="How many kept clips the HTML page shows (12 without it); 0 for none.",
)
@click.option(
    "--template",
    type=click.Choice(["paper-table2", "paper-table3"]),
    help="A table of the paper, its numbers with ours under them; as md (default), latex, csv or "
    "html.",
)
@click.option(
    "--own-rows",
    is_flag=True,
    help="Show runs that the paper has no row for in the layout of the template too.",
)
@json_option
def command(
    paths: tuple[str, ...],
    format_: str | None,
    output: Path | None,
    reference: str | None,
    clips: int | None,
    template: str | None,
    own_rows: bool,
    as_json: bool,
) -> None:
    """Show results: one row per run, every number with its 95 % interval.

    PATH is a run folder or a folder that contains run folders. Nothing is evaluated: all numbers
    are computed from the records, so runs that are still going on can be shown too.
    """
    if as_json and (format_ or output or template):
        raise UsageError(
            "--json prints to stdout and takes neither --format nor --output nor --template"
        )
    if own_rows and not template:
        raise UsageError("--own-rows belongs to --template")
    if template:
        with collector_paused():
            _write_template(template, paths, format_, output, own_rows=own_rows)
        return
    if as_json:
        from vcr_core.reporters.transfer_matrix import plain_matrices

        with collector_paused():
            runs = _load(paths)
            more = {**_robustness(runs, reference), **plain_matrices(runs)}
            emit_json({"schema": 1, "runs": _plain(runs), **more})
        return
    with collector_paused():
        _write(paths, format_, output, reference, clips)


def _write(
    paths: Sequence[str],
    format_: str | None,
    output: Path | None,
    reference: str | None,
    clips: int | None,
) -> None:
    """Write the report with the reporter of its format."""
    chosen = format_ or (_BY_SUFFIX.get(output.suffix.lower(), "") if output else "terminal")
    if not chosen:
        raise UsageError(f"{output}: say with --format what to write; the suffix does not tell")
    reporter = _reporter(chosen)
    if reference:
        if not hasattr(reporter, "reference"):
            raise UsageError(f"--reference: format {chosen!r} has no place for it")
        reporter.reference = reference
    if clips is not None:
        if not hasattr(reporter, "clips"):
            raise UsageError(f"--clips: format {chosen!r} shows no clips")
        reporter.clips = clips
    runs = _load(paths, details=getattr(reporter, "details", True))
    if reference:
        from vcr_core.robustness.systems import check_reference, grounds

        check_reference(grounds(runs), reference)
    if output is None and chosen == "terminal":
        reporter.show(runs, sys.stdout)
        return
    if output is None and chosen in ("md", "csv", "latex"):
        click.echo(reporter.text(runs), nl=False)
        return
    target = output or _beside(paths, chosen)
    for path in reporter.render(runs, target):
        click.echo(str(path))


def _write_template(
    template: str,
    paths: Sequence[str],
    format_: str | None,
    output: Path | None,
    *,
    own_rows: bool,
) -> None:
    from vcr_core.atomic import write_text
    from vcr_core.reporters.paper_tables import paper_table, table_text

    form = format_ or (_BY_SUFFIX.get(output.suffix.lower(), "") if output else "md")
    if not form:
        raise UsageError(f"{output}: say with --format what to write; the suffix does not tell")
    text = table_text(paper_table(template, _load(paths), own_rows=own_rows), form)
    if output is None:
        click.echo(text, nl=False)
        return
    write_text(output, text)
    click.echo(str(output))


def _load(paths: Sequence[str], *, details: bool = False) -> list[RunView]:
    from vcr_core.summary import find_runs, load_run

    folders: dict[Path, None] = {}
    for path in paths:
        found = find_runs(path) if Path(path).exists() else None
        if found is None:
            raise UsageError(f"{path}: no such folder")
        if not found:
            raise UsageError(f"{path}: there is no run in it; a run folder holds a run.json")
        folders.update(dict.fromkeys(folder.resolve() for folder in found))
    runs = [load_run(folder, details=details) for folder in folders]
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


def _robustness(runs: Sequence[RunView], reference: str | None) -> dict[str, Any]:
    """Return the aggregates of natural shifts, corruptions and tampering, where there are any."""
    from vcr_core.reporters.robustness import collected

    found = collected(runs, reference or "")
    if found is None:
        return {}
    return {"robustness": {"note": found} if isinstance(found, str) else found.plain()}


def _plain(runs: Sequence[RunView]) -> list[dict[str, Any]]:
    from vcr_core.reporters.flat import flat_rows
    from vcr_core.reporters.rows import make_rows

    plain = flat_rows(make_rows(runs))
    return [{**row, "flags": row["flags"].split()} for row in plain]
