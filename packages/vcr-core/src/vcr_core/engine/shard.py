"""One share of a run: the batches that are missing, each one's records appended together."""

from __future__ import annotations

import copy
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch

from vcr_core.engine.batch import BatchRunner
from vcr_core.engine.claims import Claims
from vcr_core.engine.clips import ClipKeeper
from vcr_core.engine.flight import Flight
from vcr_core.engine.ledger import Ledger
from vcr_core.engine.reuse import open_reuse
from vcr_core.engine.setup import Parts, build_setup
from vcr_core.engine.stopping import graceful_stop
from vcr_core.engine.suspects import Suspects
from vcr_core.errors import UsageError
from vcr_core.manifest import planned_videos, read_manifest
from vcr_core.plan import shard_batches
from vcr_core.plugins import registry
from vcr_core.records import RecordWriter, record_path

if TYPE_CHECKING:
    from types import TracebackType

    from vcr_core.config.experiment import Experiment
    from vcr_core.engine.model_shelf import ModelShelf
    from vcr_core.engine.stopping import StopRequest
    from vcr_core.protocols import ShardTask

POLL_S = 0.5
"""Between two looks at batches that other processes have in hand."""

HOPELESS = 32
"""So many first videos of a share without a single result point at the set-up, not the videos."""


@dataclass(frozen=True, slots=True)
class ShardOutcome:
    """How a share ended.

    Attributes:
        done: videos recorded by this call.
        errors: of these, errors.
        stopped: why it stopped early, or ``""``.
        interrupted: whether somebody asked it to stop.
        elsewhere: batches of it that other processes have in hand.
    """

    done: int
    errors: int
    stopped: str = ""
    interrupted: bool = False
    elsewhere: int = 0


def run_shard(
    task: ShardTask,
    experiment: Experiment,
    *,
    parts: Parts | None = None,
    reverse: bool = False,
    shelf: ModelShelf | None = None,
    wait: bool = True,
) -> ShardOutcome:
    """Make the missing records of one share.

    Batches that another process has in hand are left to it.

    Args:
        task: folder, share, device and threads.
        experiment: the resolved experiment of the folder.
        parts: in-memory components (Python API).
        reverse: go through the batches backwards; the records are the same.
        shelf: models of the runs before, which need not be loaded again.
        wait: whether to wait for the batches of other processes at the end, and to do those that
            they give up.
    """
    set_determinism(experiment.runtime.deterministic)
    with graceful_stop() as stop, Claims(Path(task.folder)) as claims:
        share = _Share(task, experiment, claims, stop, parts=parts, shelf=shelf)
        with share:
            while share.go_through(reverse=reverse) and wait:
                time.sleep(POLL_S)
    return share.outcome


class _Share:
    """The work on one share; components are built when the first batch is there to be done."""

    def __init__(
        self,
        task: ShardTask,
        experiment: Experiment,
        claims: Claims,
        stop: StopRequest,
        *,
        parts: Parts | None,
        shelf: ModelShelf | None,
    ) -> None:
        folder = Path(task.folder)
        self._manifest = read_manifest(folder)
        self._batches: Sequence[Sequence[str]] = self._manifest["batches"]
        self._mine = shard_batches(len(self._batches), task.index, task.count)
        self._ledger = Ledger(folder, self._batches, task.retry_below)
        self._task, self._experiment, self._parts, self._shelf = task, experiment, parts, shelf
        self._claims, self._stop = claims, stop
        self._name = f"{task.index}of{task.count}"
        self._flight = Flight(folder, self._name)
        self._suspects = Suspects(folder, self._name)
        self._observe = _observer(self._manifest)
        self._open = ExitStack()
        self._tools: tuple[BatchRunner, RecordWriter] | None = None
        self.outcome = ShardOutcome(0, 0)

    def go_through(self, *, reverse: bool) -> bool:
        """Do what is there to be done; return whether other processes have some of it in hand."""
        elsewhere = 0
        self._ledger.refresh()
        todo = [number for number in self._mine if not self._ledger.is_done(number)]
        if reverse:
            todo.reverse()
        for at, number in enumerate(todo):
            if self._stop.asked:
                self.outcome = replace(self.outcome, interrupted=True)
                return False
            if not self._claims.take(number):
                elsewhere += 1
                continue
            try:
                self._ledger.refresh()
                if not self._ledger.is_done(number):
                    self._do(number, todo[at + 1 :])
            finally:
                self._claims.leave(number)
            if self.outcome.stopped:
                return False
        self.outcome = replace(self.outcome, elsewhere=elsewhere)
        return bool(elsewhere)

    def _do(self, number: int, later: Sequence[int]) -> None:
        runner, writer = self._tools = self._tools or self._built()
        self._flight.batch = number
        # Nothing that is done with care may be decoded while another batch is in flight.
        bold = takewhile(lambda n: not self._suspects.care(n), later[: runner.ahead])
        runner.expect(self._batches[n] for n in bold)
        made = runner.run(
            number,
            self._batches[number],
            self._ledger.attempt(number),
            care=self._suspects.care(number),
            blamed=self._suspects.blamed,
        )
        writer.append(made)
        for record in made:
            self._observe(record)
        failures = [record["error"] for record in made if record["status"] == "error"]
        done, errors = self.outcome.done + len(made), self.outcome.errors + len(failures)
        why = _why_to_stop(done, errors, failures, self._experiment.runtime.max_errors)
        self.outcome = ShardOutcome(done, errors, why)

    def _built(self) -> tuple[BatchRunner, RecordWriter]:
        folder, task = Path(self._task.folder), self._task
        self._open.enter_context(_cpu_threads(self._manifest.get("threads") or task.threads))
        setup = build_setup(self._experiment, self._parts, shelf=self._shelf)
        threads = torch.get_num_threads()
        setup.reuse = open_reuse(setup, self._parts, self._manifest, threads)
        if setup.source is not None:
            own = self._parts.of_source() if self._parts is not None else None
            setup.source.reuse = open_reuse(setup.source, own, self._manifest, threads)
        keeper = ClipKeeper(
            folder,
            planned_videos(self._manifest)[: self._experiment.output.keep_clips],
            float(self._experiment.threat.eps),
        )
        runner = BatchRunner(
            setup,
            self._manifest["run"],
            self._name,
            on_stage=self._flight.stage,
            on_result=keeper,
        )
        self._open.enter_context(runner)
        path = record_path(folder, self._name, f"{platform.node()}-{os.getpid()}")
        return runner, self._open.enter_context(RecordWriter(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()
        if error is not None:
            return  # what was in hand stands on disk, for whoever looks into it
        self._flight.clear()
        if not (self.outcome.stopped or self.outcome.interrupted):
            self._suspects.clear()


def _why_to_stop(
    done: int, errors: int, failures: Sequence[Mapping[str, Any]], budget: float
) -> str:
    if failures and errors == done >= HOPELESS:
        return (
            f"the first {done} videos all failed, the last one with "
            f"{failures[-1]['type']}: {failures[-1]['message']}"
        )
    if budget >= 1 and errors > budget:
        return f"{errors} videos failed, {budget:g} are allowed"
    return ""


@contextmanager
def _cpu_threads(count: int) -> Iterator[None]:
    """Use so many threads inside the block; 0 leaves torch's choice."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _observer(manifest: dict[str, Any]) -> Callable[[dict[str, Any]], None]:
    """Return what tells every plugin that wants to know about a record."""
    # Each with copies of its own: what it does to them reaches nobody.
    observers = [
        partial(observer, run=copy.deepcopy(manifest))
        for observer in registry().observers("vcr_record_written")
    ]

    def observe(record: dict[str, Any]) -> None:
        for observer in observers:
            observer(record=copy.deepcopy(record))

    return observe


def set_determinism(mode: bool | str) -> None:
    """Apply ``runtime.deterministic``: ``true`` insists, ``"warn"`` warns, ``false`` leaves it.

    Raises:
        UsageError: if CUDA was started before it could be made deterministic.
    """
    if not mode:
        return
    if torch.cuda.is_available():
        started = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        if started and "CUBLAS_WORKSPACE_CONFIG" not in os.environ:
            raise UsageError(
                "runtime.deterministic: CUDA is already running; set "
                "CUBLAS_WORKSPACE_CONFIG=:4096:8 before the program starts"
            )
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.backends.cudnn.benchmark = False
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
    torch.use_deterministic_algorithms(True, warn_only=mode == "warn")
