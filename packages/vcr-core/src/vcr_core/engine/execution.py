"""Opened runs become finished ones: their missing records are made, their books are closed."""

from __future__ import annotations

import copy
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vcr_core.engine.clips import write_index
from vcr_core.engine.model_shelf import ModelShelf
from vcr_core.engine.shard import run_shard
from vcr_core.engine.workers import build_executor, plan_tasks
from vcr_core.errors import UsageError, VcrError
from vcr_core.executors.lanes import INTERRUPTED
from vcr_core.health import run_flags
from vcr_core.manifest import finish_manifest, planned_videos, update_manifest
from vcr_core.plan import pending_batches
from vcr_core.plugins import registry
from vcr_core.protocols import ShardStatus
from vcr_core.records import read_records
from vcr_core.storage import StorageRefused
from vcr_core.summary import write_summary

if TYPE_CHECKING:
    from pathlib import Path

    from vcr_core.engine.run import Run
    from vcr_core.manifest import RunStatus

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the execution of a run ended.

    Attributes:
        status: ``done``, ``interrupted`` or ``failed``.
        exit_code: 0; 1 when more videos failed than allowed; 130 when interrupted.
        summary: the derived summary.
        message: what a user should know when it is not 0.
    """

    status: str
    exit_code: int
    summary: dict[str, Any]
    message: str = ""


@dataclass(slots=True)
class _Heard:
    """What the shards of a run have said."""

    messages: list[str] = field(default_factory=list)
    interrupted: bool = False

    def take(self, status: ShardStatus) -> None:
        if status.message == INTERRUPTED:
            self.interrupted = True
        elif not status.ok and status.message not in self.messages:
            self.messages.append(status.message)


def execute(run: Run, *, reverse: bool = False, shelf: ModelShelf | None = None) -> Outcome:
    """Make the missing records with the run's executor, derive the summary, say how it went.

    Args:
        run: the run.
        reverse: go through the batches backwards.
        shelf: loaded models of earlier runs, for runs in this process.

    Raises:
        VcrError: if a run in this process cannot be set up.
    """
    in_process = run.parts is not None or run.experiment.executor.name == "inline"
    if not in_process:
        if reverse:
            raise UsageError(
                "--reverse is for the inline executor; workers have an order of their own"
            )
        [(_, outcome)] = execute_all([run])
        return outcome
    heard = _Heard()
    _begin(run)
    try:
        for task in plan_tasks([run]):
            made = run_shard(task, run.experiment, parts=run.parts, reverse=reverse, shelf=shelf)
            message = INTERRUPTED if made.interrupted else made.stopped
            heard.take(ShardStatus(task, ok=not message, message=message))
    except BaseException as error:
        _give_up([run.folder], error)
        raise
    return _finish(run, heard)


def execute_all(runs: Sequence[Run]) -> Iterator[tuple[Run, Outcome]]:
    """Make the missing records of several runs with their executor; yield each as it ends.

    In this process they are done one after the other, each model loaded once; a run that cannot
    be set up fails alone. Otherwise all shards go to the executor at once, so that its workers
    never wait for a run to end.
    """
    for config, group in itertools.groupby(runs, key=lambda run: run.experiment.executor):
        together = list(group)
        yield from in_turn(together) if config.name == "inline" else _together(together)


def in_turn(
    runs: Sequence[Run], one: Callable[[Run, ModelShelf], Outcome] | None = None
) -> Iterator[tuple[Run, Outcome]]:
    """Execute runs in this process, one after the other; stop after one that was interrupted.

    Args:
        runs: the runs.
        one: executes one of them; :func:`execute` by default.
    """
    shelf = ModelShelf()
    for run in runs:
        try:
            outcome = one(run, shelf) if one else execute(run, shelf=shelf)
        except StorageRefused:
            raise  # the next run could not be stored, either
        except VcrError as error:
            outcome = Outcome("failed", error.exit_code, {}, str(error))
        yield run, outcome
        if outcome.exit_code == 130:
            return


def _together(runs: Sequence[Run]) -> Iterator[tuple[Run, Outcome]]:
    done = [run for run in runs if not run.pending]
    for run in runs:
        _begin(run)
    for run in done:
        yield run, _finish(run, _Heard())
    open_runs = {run.folder.resolve(): run for run in runs if run.pending}
    if not open_runs:
        return
    try:
        executor = build_executor(runs[0].experiment)
        tasks = plan_tasks(list(open_runs.values()), executor)
        heard = {folder: _Heard() for folder in open_runs}
        left = Counter(task.folder for task in tasks)
        for status in executor.run(tasks):
            folder = status.task.folder
            heard[folder].take(status)
            left[folder] -= 1
            if not left[folder]:
                run = open_runs.pop(folder)
                yield run, _finish(run, heard[folder])
    except BaseException as error:
        _give_up(open_runs, error)
        raise
    for folder, run in open_runs.items():  # an executor that said nothing of them
        yield run, _finish(run, heard[folder])


def _give_up(folders: Iterable[Path], error: BaseException) -> None:
    """Write how runs ended, if the disk still takes it."""
    status: RunStatus = "failed" if isinstance(error, Exception) else "interrupted"
    for folder in folders:
        try:
            finish_manifest(folder, status)
        except StorageRefused as refused:
            logger.warning("%s", refused)


def _begin(run: Run) -> None:
    manifest = update_manifest(run.folder, status="running", ended=None)
    for observer in registry().observers("vcr_run_started"):
        observer(run=copy.deepcopy(manifest))


def _finish(run: Run, heard: _Heard) -> Outcome:
    write_index(run.folder, planned_videos(run.manifest))
    records = read_records(run.folder)
    left = pending_batches(run.manifest["batches"], records)
    failed = sum(r["status"] == "error" for r in records)
    budget = run.experiment.runtime.max_errors
    over = failed > (budget if budget >= 1 else budget * run.total)
    stopped = heard.interrupted and bool(left)
    status: RunStatus = "interrupted" if stopped else "failed" if left else "done"
    flags = run_flags(records, errors_over_budget=over)
    manifest = finish_manifest(run.folder, status, flags=flags)
    summary = write_summary(run.folder)
    for observer in registry().observers("vcr_run_finished"):
        observer(run=copy.deepcopy(manifest), summary=copy.deepcopy(summary))
    if stopped:
        return Outcome(status, 130, summary, f"interrupted; go on with: vcr run {run.folder}")
    if left:
        why = "; ".join(heard.messages) or f"{len(left)} batches have no records"
        return Outcome(status, 1, summary, why)
    if over:
        return Outcome(
            status, 1, summary,
            f"{failed} of {run.total} videos failed, more than --max-errors allows ({budget:g}); "
            f"after mending them: vcr run {run.folder} --retry-errors",
        )  # fmt: skip
    return Outcome(status, 0, summary)
