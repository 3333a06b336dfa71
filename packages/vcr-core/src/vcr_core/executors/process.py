"""One worker process per device, or several CPU workers that share the cores."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from vcr_core.engine.setup import choose_device
from vcr_core.engine.shard import read_flight
from vcr_core.engine.stopping import graceful_stop
from vcr_core.engine.suspects import Suspects
from vcr_core.executors.worker import outcome_in
from vcr_core.protocols import ShardStatus

if TYPE_CHECKING:
    from vcr_core.executors.params import ExecutorParams
    from vcr_core.protocols import ShardTask

logger = logging.getLogger(__name__)

POLL_S = 0.1
HOPELESS_DEATHS = 10
"""Deaths of one worker that brought neither a record nor a culprit, before it is given up."""

HOPELESS_STARTS = 3
"""The same for a worker that does not come to its first video."""

GRACE_S = 30.0
"""How long after its time limit a video that native code holds is waited for."""


@dataclass(slots=True)
class _Worker:
    task: ShardTask
    process: subprocess.Popen[bytes]
    log: IO[bytes]
    deaths: int = 0
    records_at_death: int = -1
    deaths_at_batch: dict[int, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.task.index}of{self.task.count}"


class ProcessExecutor:
    """Starts ``vcr run FOLDER --shard k/n`` for each shard, restarts what dies, isolates culprits.

    A worker that dies is started again. If it dies at the same batch a second time, the videos of
    that batch are tried one at a time; one that then kills its worker gets an error record.
    """

    def __init__(self, params: ExecutorParams) -> None:
        self.params = params

    def run(self, shards: Sequence[ShardTask]) -> Iterator[ShardStatus]:
        """Yield a status as each shard ends.

        Raises:
            ComponentUnavailable: for a device that is not here.
        """
        for task in shards:
            choose_device(task.device)
        workers = [_start(task) for task in shards]
        try:
            with graceful_stop() as stop:
                told = False
                while workers:
                    if stop.asked and not told:
                        told = True
                        for worker in workers:
                            worker.process.send_signal(signal.SIGTERM)
                    for worker in list(workers):
                        status = _look_after(worker, stopping=stop.asked)
                        if status is not None:
                            workers.remove(worker)
                            worker.log.close()
                            yield status
                    time.sleep(POLL_S)
        finally:
            for worker in workers:
                worker.process.kill()
                worker.process.communicate()
                worker.log.close()


def _start(task: ShardTask) -> _Worker:
    name = f"{task.index}of{task.count}"
    logs = Path(task.folder) / "logs"
    logs.mkdir(exist_ok=True)
    log = (logs / f"worker-{name}.log").open("ab")
    return _Worker(task, _spawn(task, log), log)


def _spawn(task: ShardTask, log: IO[bytes]) -> subprocess.Popen[bytes]:
    command = [
        sys.executable, "-m", "vcr_core", "run", str(task.folder),
        "--shard", f"{task.index}/{task.count}", "--worker",
    ]  # fmt: skip
    if task.retry_errors:
        command.append("--retry-errors")
    environment = dict(os.environ)
    if task.threads:
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            environment[name] = str(task.threads)
    if task.device.startswith("cuda:"):
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        devices = visible.split(",") if visible else []
        index = int(task.device.partition(":")[2])
        environment["CUDA_VISIBLE_DEVICES"] = devices[index] if devices else str(index)
        command += ["--set", "runtime.device=cuda:0"]
    # A group of its own: Ctrl-C reaches the parent only, which then asks the workers to stop.
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment,
        start_new_session=True,
    )  # fmt: skip


def _look_after(worker: _Worker, *, stopping: bool) -> ShardStatus | None:
    """Return the status of a worker that ended for good; restart one that died."""
    code = worker.process.poll()
    if code is None:
        _kill_if_stuck(worker)
        return None
    said = outcome_in(worker.process.communicate()[0])
    if said is not None:
        message = "interrupted" if said["interrupted"] else said["stopped"]
        return ShardStatus(worker.task, ok=not message, message=message)
    if stopping:
        return ShardStatus(worker.task, ok=False, message="interrupted")
    if code in (2, 3):
        return ShardStatus(worker.task, ok=False, message=_last_words(worker))
    return _after_death(worker, code)


def _after_death(worker: _Worker, code: int) -> ShardStatus | None:
    folder = Path(worker.task.folder)
    reason = f"signal {-code}" if code < 0 else f"exit code {code}"
    flight = read_flight(folder, worker.name)
    if flight is not None and flight["pid"] != worker.process.pid:
        flight = None  # of an earlier process; this one came to no video
    batch = flight["batch"] if flight else -1
    written = sum(
        path.stat().st_size for path in (folder / "records").glob(f"part-{worker.name}-*.jsonl")
    )
    worker.deaths = 1 if written != worker.records_at_death else worker.deaths + 1
    worker.records_at_death = written
    logger.warning(
        "worker %s died (%s) %s; starting it again", worker.name, reason,
        "before its first video" if flight is None else f"in batch {batch}",
    )  # fmt: skip
    if worker.deaths >= (HOPELESS_STARTS if flight is None else HOPELESS_DEATHS):
        return ShardStatus(
            worker.task,
            ok=False,
            message=f"worker {worker.name} died {worker.deaths} times without a new record "
            f"(last: {reason}); {_last_words(worker)}",
        )
    if flight is not None:
        count = worker.deaths_at_batch[batch] = worker.deaths_at_batch.get(batch, 0) + 1
        suspects = Suspects(folder, worker.name)
        if count == 2:
            suspects.handle(batch, "alone-first")
        elif count > 2 and len(flight["videos"]) > 1:
            suspects.handle(batch, "apart")
        elif count > 2:
            suspects.blame(
                batch,
                flight["videos"][0],
                f"the worker process died ({reason}) while at this video (stage "
                f"{flight['stage']}), {count} times",
            )
            # The batch may hold another one, which is found in the same way.
            worker.deaths = worker.deaths_at_batch[batch] = 0
    worker.process = _spawn(worker.task, worker.log)
    return None


def _kill_if_stuck(worker: _Worker) -> None:
    limit = _time_limit(Path(worker.task.folder))
    if limit is None:
        return
    flight = read_flight(Path(worker.task.folder), worker.name)
    if flight is None or flight["pid"] != worker.process.pid:
        return
    allowed = limit * len(flight["videos"]) + GRACE_S
    if time.time() - flight["since"] > allowed:
        logger.warning("worker %s is stuck at %s; killing it", worker.name, flight["videos"])
        worker.process.kill()


def _time_limit(folder: Path) -> float | None:
    import tomllib

    try:
        machine = tomllib.loads((folder / "machine.toml").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    limit = machine.get("runtime", {}).get("video_time_limit_s")
    return None if limit is None else float(limit)


def _last_words(worker: _Worker) -> str:
    worker.log.flush()
    path = Path(worker.log.name)
    text = path.read_text(encoding="utf-8", errors="replace").strip()
    lines = [line.removeprefix("error: ") for line in text.splitlines()[-5:]]
    return " | ".join(lines) if lines else f"see {path.name}"
