"""``--emit-slurm FILE``: a plain batch script, for sites that want to see what they submit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vcr_core.engine.run import Run

F = TypeVar("F", bound="Callable[..., Any]")


def slurm_option(function: F) -> F:
    """Add ``--emit-slurm``."""
    option: Callable[[F], F] = click.option(
        "--emit-slurm",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="SCRIPT",
        help="Make the folders, write a plain sbatch script that does the rest, and stop.",
    )
    return option(function)


def write_script(path: Path, runs: Sequence[Run]) -> None:
    """Write the script and say how to submit it.

    Raises:
        UsageError: if nothing is left to do, or a run is missing what the script needs.
    """
    from vcr_core.executors.sbatch import batch_script

    todo = [run for run in runs if run.pending]
    if not todo:
        raise click.UsageError("all records of these runs are there; there is nothing to submit")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(batch_script(todo), encoding="utf-8")
    path.chmod(0o755)
    videos = sum(run.missing for run in todo)
    click.echo(str(path))
    click.echo(
        f"{len(todo)} runs, {videos} videos to do; submit with: sbatch {path}; then vcr status, "
        "and at the end the same command without --emit-slurm for the summaries",
        err=True,
    )
