"""``vcr run``: make the records of one experiment that are missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vcr_core.cli.emit_slurm import slurm_option, write_script
from vcr_core.cli.experiment_options import experiment_options, worker_overrides
from vcr_core.cli.output import emit_json, json_option
from vcr_core.cli.shards import run_folders

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vcr_core.engine.execution import Outcome
    from vcr_core.engine.model_shelf import ModelShelf
    from vcr_core.engine.run import Run


@click.command("run")
@click.argument("sources", nargs=-1, metavar="[FILE|PRESET|FOLDER...]")
@experiment_options
@click.option("--results", type=click.Path(path_type=Path), help="Folder of all runs.")
@click.option("--workers", type=click.IntRange(min=0), help="Worker processes; 0 = one per device.")
@click.option("--retry-errors", is_flag=True, help="Do videos again whose record is an error.")
@click.option(
    "--max-errors", type=click.FloatRange(min=0), metavar="N",
    help="Errors allowed: a fraction below 1, or a count from 1 on.  [default: 0.05]",
)  # fmt: skip
@click.option("--shard", metavar="K/N", help="Only share K of N (from 0) of the runs in FOLDER...")
@click.option("--plan", is_flag=True, help="Make the run's folder and stop, for --shard elsewhere.")
@slurm_option
@click.option("--reverse", is_flag=True, help="Go through the batches backwards.")
@click.option("--retry-below", type=click.IntRange(min=0), default=0, hidden=True)
@click.option("--worker", is_flag=True, hidden=True)
@json_option
def command(
    sources: tuple[str, ...],
    shortcuts: Mapping[str, Any],
    overrides: Sequence[str],
    results: Path | None,
    workers: int | None,
    retry_errors: bool,
    max_errors: float | None,
    shard: str | None,
    plan: bool,
    emit_slurm: Path | None,
    reverse: bool,
    retry_below: int,
    worker: bool,
    as_json: bool,
) -> int:
    """Make the records of experiments that are missing; run it again to resume.

    \b
    Examples:
      vcr run --model tiny-r3d --attack ifgsm --eps 2/255 --limit 16
      vcr run experiment.toml --set attack.steps=50
      vcr run results/RUN-ID --retry-errors
      vcr run results/*
    """  # noqa: D301
    if worker:
        from vcr_core.executors.worker import serve

        serve()
        return 0
    extra = [*overrides, *worker_overrides(workers)]
    if max_errors is not None:
        extra.append(f"runtime.max_errors={max_errors}")
    if shard is not None:
        from vcr_core.cli.shards import parse_share, run_shares

        share = parse_share(
            shard, overrides=extra, retry_errors=retry_errors, retry_below=retry_below,
            reverse=reverse,
        )  # fmt: skip
        return run_shares(sources, share, shortcuts)
    runs = _opened(sources, shortcuts, extra, results=results, retry_errors=retry_errors)
    if emit_slurm is not None:
        write_script(emit_slurm, runs)
        return 0
    if plan:
        for run in runs:
            click.echo(str(run.folder))
        return 0
    if len(runs) > 1:
        return _run_all(runs, as_json=as_json)
    outcome = run_with_progress(runs[0], reverse=reverse)
    show(runs[0], outcome, as_json=as_json)
    return outcome.exit_code


def _opened(
    sources: Sequence[str],
    shortcuts: Mapping[str, Any],
    overrides: Sequence[str],
    *,
    results: Path | None,
    retry_errors: bool,
) -> list[Run]:
    """Return the runs of the command line: those of folders, or one of a file or of options."""
    from vcr_core.config.resolve import resolve_run
    from vcr_core.engine.run import open_run, reopen

    folders = run_folders(sources)
    if folders:
        if shortcuts:
            raise click.UsageError(
                f"{folders[0]} is a run; what it evaluates is fixed. Use --set for paths and "
                "runtime only, or start from its resolved.toml"
            )
        return [
            reopen(Path(folder), overrides=overrides, retry_errors=retry_errors)
            for folder in folders
        ]
    if len(sources) > 1:
        raise click.UsageError(
            f"{sources[0]} is no run folder; give one file or preset, or any number of run folders"
        )
    resolved = resolve_run(
        sources[0] if sources else None, overrides=overrides, shortcuts=shortcuts
    )
    for text in resolved.notes:
        click.echo(f"note: {text}", err=True)
    return [open_run(resolved, results=results, retry_errors=retry_errors)]


def _run_all(runs: Sequence[Run], *, as_json: bool) -> int:
    """Go on with several runs and show what came out, as a sweep does."""
    from vcr_core.cli.sweep import run_with_views, show_outcome
    from vcr_core.sweeping import OpenSweep, finish_all

    opened = OpenSweep(list(runs), list(range(len(runs))))
    return show_outcome(finish_all(opened, run_with_views), as_json=as_json)


def run_with_progress(
    run: Run,
    *,
    reverse: bool = False,
    quiet: bool = False,
    shelf: ModelShelf | None = None,
) -> Outcome:
    """Execute a run while its progress is shown on stderr."""
    from vcr_core.cli.options import is_quiet
    from vcr_core.engine.execution import execute
    from vcr_core.loading import quiet_stdout
    from vcr_core.progress import Progress
    from vcr_core.watching import watched

    progress = Progress(title=run.name, defended=run.experiment.adaptive, quiet=quiet or is_quiet())
    with quiet_stdout(), watched([run], progress):
        return execute(run, reverse=reverse, shelf=shelf)


def show(run: Run, outcome: Outcome, *, as_json: bool) -> None:
    """Print a run's result: a table row, or JSON."""
    if as_json:
        emit_json({
            "schema": 1, "run": run.name, "folder": str(run.folder), "status": outcome.status,
            "exit_code": outcome.exit_code, "message": outcome.message,
            "summary": outcome.summary,
        })  # fmt: skip
        return
    import sys

    from vcr_core.reporters.terminal import TerminalReporter
    from vcr_core.summary import load_run

    TerminalReporter().show([load_run(run.folder)], sys.stdout)
    click.echo(f"records: {run.folder}", err=True)
    if outcome.message:
        click.echo(f"error: {outcome.message}", err=True)
