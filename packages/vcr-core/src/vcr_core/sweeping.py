"""Runs the combinations of a sweep, ordered so that little is done twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from vcr_core.engine.execution import Outcome, execute_all
from vcr_core.engine.run import Run, open_run
from vcr_core.engine.selection import Selections
from vcr_core.errors import VcrError
from vcr_core.sweep_order import Step, sweep_steps

if TYPE_CHECKING:
    from vcr_core.config.resolve import Resolved
    from vcr_core.config.sweep import Combination

RunAll: TypeAlias = Callable[[Sequence[Run]], Iterable[tuple[Run, Outcome]]]
"""Executes opened runs and yields each as it ends."""


@dataclass(frozen=True, slots=True)
class SweepOutcome:
    """How a sweep ended.

    Attributes:
        folders: folders of the runs that were begun, in the order of the sweep file.
        exit_code: the largest of the runs' exit codes.
        messages: what went wrong, by run.
    """

    folders: tuple[Path, ...]
    exit_code: int
    messages: tuple[str, ...]


@dataclass(slots=True)
class OpenSweep:
    """A sweep whose folders are there.

    Attributes:
        runs: the runs in the order in which they are done.
        positions: of each of them in the sweep file.
        exit_code: the largest of those that could not be opened.
        messages: why they could not.
    """

    runs: list[Run] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    exit_code: int = 0
    messages: list[str] = field(default_factory=list)


def open_sweep(
    combinations: Sequence[Combination],
    *,
    results: Path | None = None,
    retry_errors: bool = False,
) -> OpenSweep:
    """Make or find the folder of every possible combination.

    One that cannot be opened, because an artifact is missing or its folder is damaged, is left out
    with a message; the others need not wait for it.

    Args:
        combinations: what :func:`vcr_core.config.sweep.expand` made of the sweep file.
        results: folder of all runs.
        retry_errors: count batches with errors as missing.
    """
    opened, selections = OpenSweep(), Selections()
    for step in sweep_steps(combinations):
        try:
            run = open_run(
                _sharing(step),
                results=results,
                retry_errors=retry_errors,
                selections=selections,
            )
        except VcrError as error:
            opened.exit_code = max(opened.exit_code, error.exit_code)
            opened.messages.append(str(error))
            continue
        opened.runs.append(run)
        opened.positions.append(step.index)
    return opened


def run_sweep(
    combinations: Sequence[Combination],
    run_all: RunAll = execute_all,
    *,
    results: Path | None = None,
    retry_errors: bool = False,
) -> SweepOutcome:
    """Run every possible combination; see :func:`open_sweep` and :func:`finish_all`."""
    opened = open_sweep(combinations, results=results, retry_errors=retry_errors)
    return finish_all(opened, run_all)


def finish_all(opened: OpenSweep, run_all: RunAll = execute_all) -> SweepOutcome:
    """Make the missing records of opened runs.

    Args:
        opened: the runs.
        run_all: executes them.
    """
    messages = list(opened.messages)
    worst = opened.exit_code
    begun = set()
    for run, outcome in run_all(opened.runs):
        begun.add(run.folder)
        worst = max(worst, outcome.exit_code)
        if outcome.message:
            messages.append(f"{run.name}: {outcome.message}")
    order = sorted(range(len(opened.runs)), key=opened.positions.__getitem__)
    folders = [opened.runs[turn].folder for turn in order]
    return SweepOutcome(tuple(f for f in folders if f in begun), worst, tuple(messages))


def _sharing(step: Step) -> Resolved:
    """Return a step's run, told to keep what a later step needs unless it was told otherwise."""
    experiment = step.resolved.experiment
    if not step.shares or experiment.runtime.reuse != "auto":
        return step.resolved
    runtime = msgspec.structs.replace(experiment.runtime, reuse=True)
    return replace(step.resolved, experiment=replace(experiment, runtime=runtime))
