"""``vcr sweep``: run every combination of a sweep file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vcr_core.cli import INTERRUPTED
from vcr_core.cli.experiment_options import experiment_options, worker_overrides
from vcr_core.cli.output import emit_json, emit_table, json_option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vcr_core.config.sweep import Combination


@click.command("sweep")
@click.argument("source", metavar="FILE|PRESET")
@experiment_options
@click.option("--dry-run", is_flag=True, help="Print the combinations and stop.")
@click.option("--results", type=click.Path(path_type=Path), help="Folder of all runs.")
@click.option("--workers", type=click.IntRange(min=0), help="Worker processes a run.")
@click.option("--retry-errors", is_flag=True, help="Do videos again whose record is an error.")
@json_option
def command(
    source: str,
    shortcuts: Mapping[str, Any],
    overrides: Sequence[str],
    dry_run: bool,
    results: Path | None,
    workers: int | None,
    retry_errors: bool,
    as_json: bool,
) -> int:
    """Run every combination of a sweep file; run it again to resume.

    \b
    Examples:
      vcr sweep matrix.toml --dry-run
      vcr sweep matrix.toml --limit 32
    """  # noqa: D301
    from vcr_core.config.sweep import expand

    combinations = expand(source, [*overrides, *worker_overrides(workers)], shortcuts)
    if dry_run:
        show_plan(combinations, as_json=as_json)
        return 0
    possible = [c for c in combinations if c.resolved is not None]
    if not possible:
        show_plan(combinations, as_json=as_json)
        click.echo("error: no combination of this sweep can run", err=True)
        return 2
    from vcr_core.cli.run import run_with_progress
    from vcr_core.reporters.terminal import TerminalReporter
    from vcr_core.summary import load_run
    from vcr_core.sweeping import run_sweep

    for skipped in (c for c in combinations if c.resolved is None):
        click.echo(f"skipped: {described(skipped)}: {skipped.problem}", err=True)
    outcome = run_sweep(
        combinations,
        lambda run: run_with_progress(run, retry_errors=retry_errors),
        results=results,
        retry_errors=retry_errors,
    )
    views = [load_run(folder) for folder in outcome.folders]
    if as_json:
        emit_json({
            "schema": 1,
            "exit_code": outcome.exit_code,
            "runs": [{"run": v.name, "folder": str(v.folder), "summary": v.summary} for v in views],
        })  # fmt: skip
    else:
        TerminalReporter().show(views, sys.stdout)
    for message in outcome.messages:
        click.echo(f"error: {message}", err=True)
    if outcome.exit_code == INTERRUPTED:
        click.echo("the same command goes on with the sweep", err=True)
    return outcome.exit_code


def show_plan(combinations: Sequence[Combination], *, as_json: bool) -> None:
    """Print the combinations, which are impossible and why."""
    if as_json:
        emit_json({
            "schema": 1,
            "combinations": [
                {"values": c.values, "possible": c.resolved is not None, "problem": c.problem,
                 "notes": list(c.notes)}
                for c in combinations
            ],
        })  # fmt: skip
        return
    emit_table(
        ("", "combination", "remarks"),
        [
            ("run" if c.resolved is not None else "cannot", described(c),
             c.problem or "; ".join(c.notes))
            for c in combinations
        ],
    )  # fmt: skip
    count = sum(c.resolved is not None for c in combinations)
    click.echo(f"{count} of {len(combinations)} combinations can run", err=True)


def described(combination: Combination) -> str:
    """Return a combination's values in one line."""
    return ", ".join(f"{key} = {value}" for key, value in combination.values.items())
