"""``vcr run``: make the records of one experiment that are missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vcr_core.cli.experiment_options import experiment_options, worker_overrides
from vcr_core.cli.output import emit_json, json_option

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vcr_core.engine.run import Outcome, Run


@click.command("run")
@click.argument("source", required=False, metavar="[FILE|PRESET|FOLDER]")
@experiment_options
@click.option("--results", type=click.Path(path_type=Path), help="Folder of all runs.")
@click.option("--workers", type=click.IntRange(min=0), help="Worker processes; 0 = one per device.")
@click.option("--retry-errors", is_flag=True, help="Do videos again whose record is an error.")
@click.option(
    "--max-errors", type=click.FloatRange(min=0), metavar="N",
    help="Errors allowed: a fraction below 1, or a count from 1 on.  [default: 0.05]",
)  # fmt: skip
@click.option("--shard", metavar="K/N", help="Only share K of N (from 0) of the run in FOLDER.")
@click.option("--plan", is_flag=True, help="Make the run's folder and stop, for --shard elsewhere.")
@click.option("--reverse", is_flag=True, help="Go through the batches backwards.")
@click.option("--worker", is_flag=True, hidden=True)
@json_option
def command(
    source: str | None,
    shortcuts: Mapping[str, Any],
    overrides: Sequence[str],
    results: Path | None,
    workers: int | None,
    retry_errors: bool,
    max_errors: float | None,
    shard: str | None,
    plan: bool,
    reverse: bool,
    worker: bool,
    as_json: bool,
) -> int:
    """Make the records of an experiment that are missing; run it again to resume.

    \b
    Examples:
      vcr run --model tiny-r3d --attack ifgsm --eps 2/255 --limit 16
      vcr run experiment.toml --set attack.steps=50
      vcr run results/RUN-ID --retry-errors
    """  # noqa: D301
    if shard is not None:
        return _run_shard(source, shard, overrides, retry_errors=retry_errors, reverse=reverse,
                          worker=worker)  # fmt: skip
    from vcr_core.config.resolve import resolve_run
    from vcr_core.engine.run import open_run, reopen

    extra = worker_overrides(workers)
    if source is not None and (Path(source) / "run.json").is_file():
        if shortcuts:
            raise click.UsageError(
                f"{source} is a run; what it evaluates is fixed. Use --set for paths and runtime "
                "only, or start from its resolved.toml"
            )
        run = reopen(Path(source), overrides=[*overrides, *extra], retry_errors=retry_errors)
    else:
        resolved = resolve_run(source, overrides=[*overrides, *extra], shortcuts=shortcuts)
        for text in resolved.notes:
            click.echo(f"note: {text}", err=True)
        run = open_run(resolved, results=results, retry_errors=retry_errors)
    if plan:
        click.echo(str(run.folder))
        return 0
    outcome = run_with_progress(
        run, retry_errors=retry_errors, max_errors=max_errors, reverse=reverse
    )
    show(run, outcome, as_json=as_json)
    return outcome.exit_code


def run_with_progress(
    run: Run,
    *,
    retry_errors: bool = False,
    max_errors: float | None = None,
    reverse: bool = False,
    quiet: bool = False,
) -> Outcome:
    """Execute a run while its progress is shown on stderr."""
    from vcr_core.cli.options import is_quiet
    from vcr_core.engine.run import execute
    from vcr_core.loading import quiet_stdout
    from vcr_core.progress import Progress
    from vcr_core.watching import watched

    progress = Progress(title=run.name, defended=run.experiment.adaptive, quiet=quiet or is_quiet())
    with quiet_stdout(), watched(run, progress):
        return execute(run, retry_errors=retry_errors, max_errors=max_errors, reverse=reverse)


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


def _run_shard(
    source: str | None,
    shard: str,
    overrides: Sequence[str],
    *,
    retry_errors: bool,
    reverse: bool,
    worker: bool,
) -> int:
    """Run one share of an existing run; what any scheduler can call."""
    from vcr_core.config.resolve import resolve_run
    from vcr_core.engine.machine import run_document
    from vcr_core.engine.shard import run_shard
    from vcr_core.executors.worker import attach
    from vcr_core.loading import quiet_stdout
    from vcr_core.protocols import ShardTask

    if source is None or not (Path(source) / "run.json").is_file():
        raise click.UsageError(
            "--shard needs the folder of a run: vcr run FOLDER --shard 0/4 "
            "(vcr run … --plan makes one without running it)"
        )
    index, _, count = shard.partition("/")
    if not (index.isdigit() and count.isdigit() and int(index) < int(count)):
        raise click.UsageError(f"--shard {shard}: K/N with 0 <= K < N is needed, such as 0/4")
    tell = attach() if worker else None
    experiment = resolve_run(run_document(Path(source)), overrides=overrides).experiment
    runtime = experiment.runtime
    task = ShardTask(
        Path(source), int(index), int(count), runtime.device, runtime.threads, retry_errors
    )
    with quiet_stdout():
        outcome = run_shard(task, experiment, reverse=reverse)
    if tell is not None:
        tell(outcome)
        return 0
    click.echo(f"shard {shard}: {outcome.done} videos, {outcome.errors} errors", err=True)
    if outcome.interrupted:
        click.echo(f"interrupted; go on with: vcr run {source} --shard {shard}", err=True)
        return 130
    if outcome.stopped:
        click.echo(f"error: {outcome.stopped}", err=True)
        return 1
    return 0
