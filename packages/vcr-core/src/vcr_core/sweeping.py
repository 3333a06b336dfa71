"""Runs the combinations of a sweep one after the other, grouped so that little is done twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vcr_core.artifacts import ArtifactMissing
from vcr_core.engine.run import Outcome, Run, open_run

if TYPE_CHECKING:
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
    possible = [c.resolved for c in combinations if c.resolved is not None]
    folders: dict[int, Path] = {}
    messages: list[str] = []
    worst = 0
    # Clean runs first, then by model: what fails early fails cheaply.
    order = sorted(
        range(len(possible)),
        key=lambda i: (
            possible[i].experiment.model.qualified,
            possible[i].experiment.attack is not None,
            possible[i].experiment.adaptive,
            i,
        ),
    )
    for index in order:
        try:
            run = open_run(possible[index], results=results, retry_errors=retry_errors)
        except ArtifactMissing as error:
            # The other cells need not wait for it.
            worst = max(worst, error.exit_code)
            messages.append(str(error))
            continue
        folders[index] = run.folder
        outcome = run_one(run)
        worst = max(worst, outcome.exit_code)
        if outcome.message:
            messages.append(f"{run.name}: {outcome.message}")
        if outcome.exit_code == 130:
            break
    return SweepOutcome(tuple(folders[i] for i in sorted(folders)), worst, tuple(messages))
