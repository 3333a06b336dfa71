"""``vcr run FOLDER... --shard K/N``: one share of some runs; what any scheduler can call."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vcr_core.cli import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vcr_core.engine.model_shelf import ModelShelf


@dataclass(frozen=True, slots=True)
class Share:
    """What ``--shard`` and its companions say.

    Attributes:
        index: which share.
        count: of how many.
        overrides: texts of ``--set``.
        retry_errors: do videos again whose record is an error.
        retry_below: the same, but only errors of attempts below this number.
        reverse: go through the batches backwards.
    """

    index: int
    count: int
    overrides: Sequence[str] = ()
    retry_errors: bool = False
    retry_below: int = 0
    reverse: bool = False

    @property
    def text(self) -> str:
        """The share as it is written on the command line."""
        return f"{self.index}/{self.count}"


def parse_share(text: str, **how: Any) -> Share:
    """Return the share that ``K/N`` names.

    Raises:
        UsageError: unless 0 <= K < N.
    """
    index, _, count = text.partition("/")
    if not (index.isdigit() and count.isdigit() and int(index) < int(count)):
        raise click.UsageError(f"--shard {text}: K/N with 0 <= K < N is needed, such as 0/4")
    return Share(int(index), int(count), **how)


def run_folders(sources: Sequence[str]) -> list[str]:
    """Return those of the sources that are run folders; what else ``results/*`` holds is left out.

    Raises:
        UsageError: if some are runs and another one does not exist.
    """
    folders = [source for source in sources if (Path(source) / "run.json").is_file()]
    if folders:
        for source in sources:
            if not Path(source).exists():
                raise click.UsageError(f"{source} does not exist, and {folders[0]} is a run")
    return folders


def run_shares(sources: Sequence[str], share: Share, shortcuts: Mapping[str, Any]) -> int:
    """Do a share of each run, in the given order, in this process; return the exit code."""
    from vcr_core.engine.model_shelf import ModelShelf

    folders = run_folders(sources)
    if not folders or shortcuts:
        raise click.UsageError(
            "--shard needs folders of runs: vcr run FOLDER --shard 0/4 "
            "(vcr run … --plan and vcr sweep … --plan make them without running)"
        )
    shelf = ModelShelf()
    worst = 0
    for folder in folders:
        code = _run_share(Path(folder), share, shelf)
        if code == INTERRUPTED:
            again = " ".join(folders[:3]) + (" …" if len(folders) > 3 else "")
            click.echo(f"interrupted; go on with: vcr run {again} --shard {share.text}", err=True)
            return code
        worst = max(worst, code)
    return worst


def _run_share(folder: Path, share: Share, shelf: ModelShelf) -> int:
    from vcr_core.config.resolve import resolve_run
    from vcr_core.engine.machine import run_document
    from vcr_core.engine.shard import run_shard
    from vcr_core.loading import quiet_stdout
    from vcr_core.plan import retry_limit
    from vcr_core.protocols import ShardTask
    from vcr_core.records import read_records

    experiment = resolve_run(run_document(folder), overrides=share.overrides).experiment
    runtime = experiment.runtime
    limit = retry_limit(read_records(folder)) if share.retry_errors else share.retry_below
    task = ShardTask(folder, share.index, share.count, runtime.device, runtime.threads, limit)
    with quiet_stdout():
        outcome = run_shard(task, experiment, reverse=share.reverse, shelf=shelf)
    click.echo(
        f"{folder.name}: shard {share.text}: {outcome.done} videos, {outcome.errors} errors",
        err=True,
    )
    if outcome.stopped:
        click.echo(f"error: {outcome.stopped}", err=True)
    return INTERRUPTED if outcome.interrupted else int(bool(outcome.stopped))
