"""``vcr sweep``: run every combination of a sweep file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vcr_core.cli import INTERRUPTED
from vcr_core.cli.emit_slurm import slurm_option, write_script
from vcr_core.cli.experiment_options import experiment_options, worker_overrides
from vcr_core.cli.output import emit_json, emit_table, json_option

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vcr_core.config.sweep import Combination
    from vcr_core.engine.execution import Outcome
    from vcr_core.engine.run import Run
    from vcr_core.sweep_order import Step
    from vcr_core.sweeping import SweepOutcome


@click.command("sweep")
@click.argument("source", metavar="FILE|PRESET")
@experiment_options
@click.option(
    "--transfer", is_flag=True, help="Show every attack on a model to the other models, too."
)
@click.option("--dry-run", is_flag=True, help="Print the combinations and stop.")
@click.option("--results", type=click.Path(path_type=Path), help="Folder of all runs.")
@click.option("--workers", type=click.IntRange(min=0), help="Worker processes of the sweep.")
@click.option("--retry-errors", is_flag=True, help="Do videos again whose record is an error.")
@click.option("--plan", is_flag=True, help="Make the folders, print them in order, and stop.")
@slurm_option
@json_option
def command(
    source: str,
    shortcuts: Mapping[str, Any],
    overrides: Sequence[str],
    transfer: bool,
    dry_run: bool,
    results: Path | None,
    workers: int | None,
    retry_errors: bool,
    plan: bool,
    emit_slurm: Path | None,
    as_json: bool,
) -> int:
    """Run every combination of a sweep file; run it again to resume.

    \b
    Examples:
      vcr sweep matrix.toml --dry-run
      vcr sweep matrix.toml --limit 32
      vcr sweep matrix.toml --workers 2
      vcr sweep matrix.toml --transfer
    """  # noqa: D301
    from vcr_core.config.sweep import expand

    more = [*overrides, *worker_overrides(workers)]
    combinations = expand(source, more, shortcuts, transfer=transfer)
    possible = [c for c in combinations if c.resolved is not None]
    if dry_run or not possible:
        show_plan(combinations, as_json=as_json)
        if not dry_run:
            click.echo("error: no combination of this sweep can run", err=True)
        return 0 if dry_run else 2
    from vcr_core.sweeping import finish_all, open_sweep

    for skipped in (c for c in combinations if c.resolved is None):
        click.echo(f"skipped: {described(skipped)}: {skipped.problem}", err=True)
    opened = open_sweep(combinations, results=results, retry_errors=retry_errors)
    if plan or emit_slurm is not None:
        for message in opened.messages:
            click.echo(f"error: {message}", err=True)
        if emit_slurm is not None:
            write_script(emit_slurm, opened.runs)
        else:
            for run in opened.runs:
                click.echo(str(run.folder))
        return opened.exit_code
    code = show_outcome(finish_all(opened, run_with_views), as_json=as_json)
    if code == INTERRUPTED:
        click.echo("the same command goes on with the sweep", err=True)
    return code


def run_with_views(runs: Sequence[Run]) -> Iterator[tuple[Run, Outcome]]:
    """Execute runs while their progress is shown: one by one in this process, else of all."""
    from vcr_core.cli.options import is_quiet
    from vcr_core.cli.run import run_with_progress
    from vcr_core.engine.execution import execute_all, in_turn
    from vcr_core.loading import quiet_stdout
    from vcr_core.progress import Progress
    from vcr_core.watching import watched

    if all(run.experiment.executor.name == "inline" for run in runs):
        yield from in_turn(runs, lambda run, shelf: run_with_progress(run, shelf=shelf))
        return
    progress = Progress(title=f"{len(runs)} runs", counts_only=True, quiet=is_quiet())
    with quiet_stdout(), watched(runs, progress):
        yield from execute_all(runs)


def show_outcome(outcome: SweepOutcome, *, as_json: bool) -> int:
    """Print what came out of several runs and return the exit code."""
    from vcr_core.reporters.terminal import TerminalReporter
    from vcr_core.reporters.transfer_matrix import plain_matrices
    from vcr_core.summary import load_run

    views = [load_run(folder) for folder in outcome.folders]
    if as_json:
        emit_json({
            "schema": 1,
            "exit_code": outcome.exit_code,
            "runs": [{"run": v.name, "folder": str(v.folder), "summary": v.summary} for v in views],
            **plain_matrices(views),
        })  # fmt: skip
    else:
        TerminalReporter().show(views, sys.stdout)
    for message in outcome.messages:
        click.echo(f"error: {message}", err=True)
    return outcome.exit_code


def show_plan(combinations: Sequence[Combination], *, as_json: bool) -> None:
    """Print the combinations: their turn, whose attack they take over, which are impossible."""
    from vcr_core.sweep_order import sweep_steps

    steps = {step.index: (turn, step) for turn, step in enumerate(sweep_steps(combinations), 1)}
    turns = {index: turn for index, (turn, _) in steps.items()}
    if as_json:
        emit_json({
            "schema": 1,
            "combinations": [
                {"values": c.values, "possible": c.resolved is not None, "problem": c.problem,
                 "notes": list(c.notes), "turn": turns.get(i), "attack": _attack_text(i, steps),
                 "attack_of": steps[i][1].attack_of if i in steps else None}
                for i, c in enumerate(combinations)
            ],
        })  # fmt: skip
        return
    emit_table(
        ("", "turn", "combination", "attack", "remarks"),
        [
            ("run" if c.resolved is not None else "cannot", turns.get(i, ""), described(c),
             _attack_text(i, steps), c.problem or "; ".join(c.notes))
            for i, c in sorted(
                enumerate(combinations), key=lambda pair: turns.get(pair[0], len(combinations) + 1)
            )
        ],
    )  # fmt: skip
    reused = sum(step.attack_of is not None for _, step in steps.values())
    text = f"{len(steps)} of {len(combinations)} combinations can run"
    click.echo(
        f"{text}; {reused} of them reuse the attack of another one" if reused else text, err=True
    )


def _attack_text(index: int, steps: Mapping[int, tuple[int, Step]]) -> str:
    """Return how the attack of a combination comes about."""
    if index not in steps:
        return ""
    step = steps[index][1]
    if step.resolved.experiment.attack is None:
        return "none"
    if step.attack_of is not None:
        return f"reused from turn {steps[step.attack_of][0]}"
    return "adaptive" if step.resolved.experiment.adaptive else "computed"


def described(combination: Combination) -> str:
    """Return a combination's values in one line."""
    return ", ".join(f"{key} = {value}" for key, value in combination.values.items())
