"""The parent of one worker process: what every executor has where the work is done."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from vcr_core.executors.lanes import INTERRUPTED, Lane
from vcr_core.executors.worker import statuses_in, tasks_line

if TYPE_CHECKING:
    from vcr_core.protocols import ShardStatus, ShardTask

logger = logging.getLogger(__name__)

LOOK_S = 2.0
"""Between two looks at what a worker has in hand."""

GRACE_S = 30.0
"""How long after its time limit a video that native code holds is waited for."""


@dataclass(slots=True)
class Attendant:
    """Starts the worker process of a lane, hears what it says, and restarts it when it dies."""

    lane: Lane
    process: subprocess.Popen[bytes] | None = None
    _log: IO[bytes] | None = None
    _said: bytearray = field(default_factory=bytearray)
    _seen: tuple[dict[str, Any], float] | None = None
    _look_at: float = 0.0

    @property
    def is_going_on(self) -> bool:
        """Whether there is a process."""
        return self.process is not None

    def start(self) -> None:
        """Start the process on what is left of the lane."""
        tasks = self.lane.left
        logs = Path(tasks[0].folder) / "logs"
        logs.mkdir(exist_ok=True)
        if self._log is not None:
            self._log.close()
        self._log = (logs / f"worker-{self.lane.name}.log").open("ab")
        environment = dict(os.environ)
        if tasks[0].threads:
            for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
                environment[name] = str(tasks[0].threads)
        told = _on_visible_device(tasks, environment)
        # A group of its own: Ctrl-C reaches the parent only, which then asks the workers to stop.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "vcr_core", "run", "--worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=environment,
            start_new_session=True,
        )  # fmt: skip
        if self.process.stdin is None or self.process.stdout is None:
            raise AssertionError("pipes were asked for")
        # One that dies before it listens is noticed as any other that dies.
        with suppress(BrokenPipeError):
            self.process.stdin.write(tasks_line(told))
            self.process.stdin.flush()
        os.set_blocking(self.process.stdout.fileno(), False)
        self._said.clear()

    def look_after(self, *, stopping: bool) -> Iterator[ShardStatus]:
        """Yield what the worker has said since; start one that died again."""
        if self.process is None:
            return
        code = self.process.poll()
        yield from self._listen()
        if code is None:
            self._kill_if_stuck()
            return
        self.process.communicate()
        pid, self.process = self.process.pid, None
        if not self.lane.left:
            return
        if stopping:
            yield from self.lane.settle_all(INTERRUPTED)
        elif code in (2, 3):
            yield from self.lane.settle_all(self._last_words())
        else:
            reason = f"signal {-code}" if code < 0 else f"exit code {code}"
            yield from self.lane.died(reason, self._last_words(), pid)
            if self.lane.left:
                self.start()

    def stop(self) -> None:
        """Ask the process to finish the batch in hand and end."""
        if self.process is not None:
            self.process.terminate()

    def kill(self) -> None:
        """End the process at once and close what is open."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None
        if self._log is not None:
            self._log.close()

    def _listen(self) -> Iterator[ShardStatus]:
        process = self.process
        if process is None or process.stdout is None:
            return
        while chunk := process.stdout.read(65536):
            self._said += chunk
        whole = self._said.rfind(b"\n") + 1
        for said in statuses_in(bytes(self._said[:whole])):
            status = self.lane.settle(said["folder"], ok=said["ok"], message=said["message"])
            if status is not None:
                yield status
        del self._said[:whole]

    def _kill_if_stuck(self) -> None:
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_S
        found = self.lane.in_hand()
        if found is None or self.process is None or found[0]["pid"] != self.process.pid:
            return
        flight, folder = found
        # Our own steady clock: that of the wall may be set while the video is in hand.
        if self._seen is None or self._seen[0] != flight:
            self._seen = (flight, time.monotonic())
        limit = _time_limit(folder)
        if limit is None:
            return
        allowed = limit * len(flight["videos"]) + GRACE_S
        if time.monotonic() - self._seen[1] > allowed:
            logger.warning("worker %s is stuck at %s; killing it", self.lane.name, flight["videos"])
            self.process.kill()

    def _last_words(self) -> str:
        if self._log is None:
            return ""
        self._log.flush()
        path = Path(self._log.name)
        text = path.read_text(encoding="utf-8", errors="replace").strip()
        lines = [line.removeprefix("error: ") for line in text.splitlines()[-5:]]
        return " | ".join(lines) if lines else f"see {path.name}"


def _on_visible_device(
    tasks: Sequence[ShardTask], environment: dict[str, str]
) -> Sequence[ShardTask]:
    """Let the worker see its GPU only, which is then its first one."""
    device = tasks[0].device
    if not device.startswith("cuda:"):
        return tasks
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    devices = visible.split(",") if visible else []
    index = int(device.partition(":")[2])
    environment["CUDA_VISIBLE_DEVICES"] = devices[index] if devices else str(index)
    return [replace(task, device="cuda:0") for task in tasks]


def _time_limit(folder: Path) -> float | None:
    import tomllib

    try:
        machine = tomllib.loads((folder / "machine.toml").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    limit = machine.get("runtime", {}).get("video_time_limit_s")
    return None if limit is None else float(limit)
