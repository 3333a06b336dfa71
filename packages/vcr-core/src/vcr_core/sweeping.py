"""Runs the combinations of a sweep one after the other, grouped so that little is done twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from vcr_core.artifacts import ArtifactMissing
from vcr_core.engine.run import Outcome, Run, open_run
from vcr_core.sweep_order import Step, sweep_steps

if TYPE_CHECKING:
    from vcr_core.config.resolve import Resolved
    from vcr_core.config.sweep import Combination


@dataclass(frozen=True, slots=True)
class SweepOutcome:
    """How a sweep ended.

    Attributes:
        folders: the run folders, in the order of the sweep file.
        exit_code: the largest of the runs' exit codes.
        messages: what went wrong, by run.
    """

    folders: tuple[Path, ...]
    exit_code: int
    messages: tuple[str, ...]


def run_sweep(
    combinations: Sequence[Combination],
    run_one: Callable[[Run], Outcome],
    *,
    results: Path | None = None,
    retry_errors: bool = False,
) -> SweepOutcome:
    """Run every possible combination.

    Args:
        combinations: what :func:`vcr_core.config.sweep.expand` made of the sweep file.
        run_one: executes an opened run.
        results: folder of all runs.
        retry_errors: count batches with errors as missing.
    """
    folders: dict[int, Path] = {}
    messages: list[str] = []
    worst = 0
    for step in sweep_steps(combinations):
        try:
            run = open_run(_sharing(step), results=results, retry_errors=retry_errors)
        except ArtifactMissing as error:
            # The other cells need not wait for it.
            worst = max(worst, error.exit_code)
            messages.append(str(error))
            continue
        folders[step.index] = run.folder
        outcome = run_one(run)
        worst = max(worst, outcome.exit_code)
        if outcome.message:
            messages.append(f"{run.name}: {outcome.message}")
        if outcome.exit_code == 130:
            break
    return SweepOutcome(tuple(folders[i] for i in sorted(folders)), worst, tuple(messages))


def _sharing(step: Step) -> Resolved:
    """Return a step's run, told to keep what a later step needs unless it was told otherwise."""
    experiment = step.resolved.experiment
    if not step.shares or experiment.runtime.reuse != "auto":
        return step.resolved
    runtime = msgspec.structs.replace(experiment.runtime, reuse=True)
    return replace(step.resolved, experiment=replace(experiment, runtime=runtime))
