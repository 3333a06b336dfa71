"""One share of a run: the batches that are missing, each one's records appended together."""

from __future__ import annotations

import copy
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from vcr_core.engine.batch import BatchRunner
from vcr_core.engine.clips import ClipKeeper
from vcr_core.engine.reuse import open_reuse
from vcr_core.engine.setup import Parts, build_setup
from vcr_core.engine.stopping import graceful_stop
from vcr_core.engine.suspects import Suspects
from vcr_core.errors import UsageError
from vcr_core.manifest import planned_videos, read_manifest
from vcr_core.plan import pending_batches, shard_batches
from vcr_core.plugins import registry
from vcr_core.records import RecordWriter, next_attempts, read_records, record_path

if TYPE_CHECKING:
    from vcr_core.config.experiment import Experiment
    from vcr_core.engine.stopping import StopRequest
    from vcr_core.protocols import ShardTask

logger = logging.getLogger(__name__)

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
    """

    done: int
    errors: int
    stopped: str = ""
    interrupted: bool = False


def run_shard(
    task: ShardTask,
    experiment: Experiment,
    *,
    parts: Parts | None = None,
    reverse: bool = False,
) -> ShardOutcome:
    """Make the missing records of one share.

    Args:
        task: folder, share, device and threads.
        experiment: the resolved experiment of the folder.
        parts: in-memory components (Python API).
        reverse: go through the batches backwards; the records are the same.
    """
    folder = Path(task.folder)
    manifest = read_manifest(folder)
    batches: Sequence[Sequence[str]] = manifest["batches"]
    records = read_records(folder)
    mine = set(shard_batches(len(batches), task.index, task.count))
    pending = pending_batches(batches, records, retry_errors=task.retry_errors)
    todo = [number for number in pending if number in mine]
    if reverse:
        todo.reverse()
    if not todo:
        return ShardOutcome(0, 0)
    set_determinism(experiment.runtime.deterministic)
    name = f"{task.index}of{task.count}"
    keeper = ClipKeeper(
        folder,
        planned_videos(manifest)[: experiment.output.keep_clips],
        float(experiment.threat.eps),
    )
    flight = _Flight(folder, name)
    suspects = Suspects(folder, name)
    threads = manifest.get("threads") or task.threads
    with _cpu_threads(threads), graceful_stop() as stop:
        setup = build_setup(experiment, parts)
        setup.reuse = open_reuse(setup, parts, manifest, torch.get_num_threads())
        runner = BatchRunner(setup, manifest["run"], name, on_stage=flight.stage, on_result=keeper)
        with runner, RecordWriter(record_path(folder, name, os.getpid())) as writer:
            outcome = _work(
                runner, experiment.runtime.max_errors, batches, todo, next_attempts(records),
                writer, flight, suspects=suspects, stop=stop, observe=_observer(manifest),
            )  # fmt: skip
    flight.clear()
    if not (outcome.stopped or outcome.interrupted):
        suspects.clear()
    return outcome


@contextmanager
def _cpu_threads(count: int) -> Iterator[None]:
    """Use so many threads inside the block; 0 leaves torch's choice."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _work(
    runner: BatchRunner,
    budget: float,
    batches: Sequence[Sequence[str]],
    todo: Sequence[int],
    attempts: dict[str, int],
    writer: RecordWriter,
    flight: _Flight,
    *,
    suspects: Suspects,
    stop: StopRequest,
    observe: Callable[[dict[str, Any]], None],
) -> ShardOutcome:
    done = errors = 0
    for at, number in enumerate(todo):
        if stop.asked:
            return ShardOutcome(done, errors, interrupted=True)
        ids = batches[number]
        flight.batch = number
        attempt = max(attempts.get(video, 1) for video in ids)
        care = suspects.care(number)
        following = todo[at + 1 : at + 1 + runner.ahead]
        # Nothing that is done with care may be decoded while another batch is in flight.
        runner.expect(batches[n] for n in takewhile(lambda n: not suspects.care(n), following))
        made = runner.run(number, ids, attempt, care=care, blamed=suspects.blamed)
        writer.append(made)
        done += len(made)
        failures = [record["error"] for record in made if record["status"] == "error"]
        errors += len(failures)
        for record in made:
            observe(record)
        if errors == done >= HOPELESS:
            return ShardOutcome(
                done, errors,
                f"the first {done} videos all failed, the last one with "
                f"{failures[-1]['type']}: {failures[-1]['message']}",
            )  # fmt: skip
        if budget >= 1 and errors > budget:
            return ShardOutcome(done, errors, f"{errors} videos failed, {budget:g} are allowed")
    return ShardOutcome(done, errors)


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


class _Flight:
    """Says on disk which videos are being worked on, for whoever finds this process dead."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = flight_path(folder, name)
        self._path.parent.mkdir(exist_ok=True)
        self.batch = -1

    def stage(self, stage: str, videos: Sequence[str]) -> None:
        said = {
            "batch": self.batch,
            "stage": stage,
            "videos": list(videos),
            "pid": os.getpid(),
            "since": time.time(),
        }
        # Replaced whole, but not forced to the disk: it need not outlive the machine.
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps(said), encoding="utf-8")
        fresh.replace(self._path)

    def clear(self) -> None:
        self._path.unlink(missing_ok=True)


def flight_path(folder: Path, name: str) -> Path:
    """Return where the worker of a share says what it is doing."""
    return Path(folder) / "logs" / f"flight-{name}.json"


def read_flight(folder: Path, name: str) -> dict[str, Any] | None:
    """Return what a worker was doing when it was last seen, or ``None``."""
    try:
        found: dict[str, Any] = json.loads(flight_path(folder, name).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return found


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
