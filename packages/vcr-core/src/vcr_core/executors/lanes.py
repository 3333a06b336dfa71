"""Lanes: the shards that one worker goes through, in the order of the sweep."""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core.errors import VcrError
from vcr_core.protocols import ShardStatus
from vcr_core.storage import StorageRefused

if TYPE_CHECKING:
    from vcr_core.engine.model_shelf import ModelShelf
    from vcr_core.protocols import ShardTask

logger = logging.getLogger(__name__)

INTERRUPTED = "interrupted"
"""The message of a shard that somebody asked to stop."""

HOPELESS_DEATHS = 10
"""Deaths of one worker that brought neither a record nor a culprit, before it is given up."""

HOPELESS_STARTS = 3
"""The same for a worker that does not come to its first video."""


def lanes_of(shards: Sequence[ShardTask]) -> list[list[ShardTask]]:
    """Return shards in lanes: those of equal index, in their order.

    Example:
        >>> from pathlib import Path
        >>> from vcr_core.protocols import ShardTask
        >>> shards = [ShardTask(Path(run), k, 2) for run in ("a", "b") for k in range(2)]
        >>> [[str(task.folder) for task in lane] for lane in lanes_of(shards)]
        [['a', 'b'], ['a', 'b']]
    """
    lanes: dict[int, list[ShardTask]] = {}
    for task in shards:
        lanes.setdefault(task.index, []).append(task)
    return list(lanes.values())


def work_through(tasks: Sequence[ShardTask]) -> Iterator[ShardStatus]:
    """Do a lane in this process and yield a status as each of its shards ends.

    Each model is loaded once. A run that cannot be set up costs its own shard. Batches that other
    processes have in hand are waited for at the end, when there is nothing else to do.
    """
    from vcr_core.engine.model_shelf import ModelShelf

    shelf = ModelShelf()
    left = deque((task, False) for task in tasks)
    while left:
        task, wait = left.popleft()
        try:
            status = _attempt(task, shelf, wait=wait)
            over = status is not None and status.message == INTERRUPTED
        except StorageRefused as error:  # the next run could not be stored, either
            status, over = ShardStatus(task, ok=False, message=str(error)), True
        if status is None:
            left.append((task, True))
            continue
        yield status
        if over:
            yield from (ShardStatus(t, ok=False, message=status.message) for t, _ in left)
            return


def _attempt(task: ShardTask, shelf: ModelShelf, *, wait: bool) -> ShardStatus | None:
    """Return how a shard ended; ``None`` if all that is left of it is in other hands."""
    import msgspec

    from vcr_core.config.resolve import resolve_run
    from vcr_core.engine.machine import run_document
    from vcr_core.engine.shard import run_shard

    try:
        experiment = resolve_run(run_document(task.folder)).experiment
        runtime = msgspec.structs.replace(experiment.runtime, device=task.device)
        outcome = run_shard(task, replace(experiment, runtime=runtime), shelf=shelf, wait=wait)
    except StorageRefused:
        raise
    except VcrError as error:
        logger.error("%s: %s", task.folder, error)
        return ShardStatus(task, ok=False, message=str(error))
    if outcome.elsewhere and not wait:
        return None
    message = INTERRUPTED if outcome.interrupted else outcome.stopped
    return ShardStatus(task, ok=not message, message=message)


@dataclass(slots=True)
class Lane:
    """A lane as whoever watches its worker sees it: what is done, and what each death means.

    A worker that dies is started again with what is left. If it dies at the same batch a second
    time, the videos of that batch are tried one at a time; one that then kills its worker gets an
    error record.

    Attributes:
        tasks: the shards of the lane.
        starts: deaths before a first video after which the lane is given up.
        settled: those that a status was given for.
    """

    tasks: Sequence[ShardTask]
    starts: int = HOPELESS_STARTS
    settled: set[Path] = field(default_factory=set)
    _deaths: int = 0
    _written: int = -1
    _flight: dict[str, Any] | None = None
    _folder: Path | None = None
    _at_batch: dict[tuple[Path, int], int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the share, ``<k>of<n>``."""
        return f"{self.tasks[0].index}of{self.tasks[0].count}"

    @property
    def left(self) -> list[ShardTask]:
        """The shards without a status."""
        return [task for task in self.tasks if task.folder not in self.settled]

    def settle(self, folder: Path, *, ok: bool, message: str = "") -> ShardStatus | None:
        """Return the status of a shard that ended; ``None`` if it has had one."""
        for task in self.left:
            if task.folder == Path(folder):
                self.settled.add(task.folder)
                return ShardStatus(task, ok=ok, message=message)
        return None

    def settle_all(self, message: str) -> list[ShardStatus]:
        """Return a status with this message for every shard that is left."""
        statuses = [ShardStatus(task, ok=False, message=message) for task in self.left]
        self.settled |= {status.task.folder for status in statuses}
        return statuses

    def died(self, reason: str, last_words: str = "", pid: int | None = None) -> list[ShardStatus]:
        """Take note of a death.

        Args:
            reason: of what, such as ``signal 9``.
            last_words: what the worker said last.
            pid: its process id, if known.

        Returns:
            Statuses if the lane is given up; none if its worker is to be started again.
        """
        flight, folder = self._last_seen(pid)
        written = self.bytes_written()
        self._deaths = 1 if written != self._written else self._deaths + 1
        self._written = written
        logger.warning(
            "worker %s died (%s) %s; starting it again", self.name, reason,
            f"in batch {flight['batch']}" if flight else "before its first video",
        )  # fmt: skip
        if self._deaths >= (HOPELESS_DEATHS if flight else self.starts):
            said = f"; {last_words}" if last_words else ""
            return self.settle_all(
                f"worker {self.name} died {self._deaths} times without a new record "
                f"(last: {reason}){said}"
            )
        if flight:
            self._look_for_the_culprit(folder, flight, reason)
        return []

    def in_hand(self) -> tuple[dict[str, Any], Path] | None:
        """Return what the worker says it is doing, and in which run."""
        from vcr_core.engine.flight import read_flight

        # It is where it was last, or in the next run, unless it waits for other processes.
        likely = [task.folder for task in self.left]
        if self._folder in likely:
            likely = [self._folder, *likely]
        for folder in likely:
            flight = read_flight(folder, self.name)
            if flight is not None:
                self._folder = folder
                return flight, folder
        return None

    def bytes_written(self) -> int:
        """Return how much workers of this lane have recorded."""
        total = 0
        for task in self.tasks:
            for path in (Path(task.folder) / "records").glob(f"part-{self.name}-*.jsonl"):
                with contextlib.suppress(FileNotFoundError):
                    total += path.stat().st_size
        return total

    def _last_seen(self, pid: int | None) -> tuple[dict[str, Any] | None, Path]:
        """Return what the dead worker had in hand, if it came to a video at all.

        What another process of the same share says, or an earlier one said, is not its word.
        """
        found = self.in_hand()
        if found is None or found[0] == self._flight or pid not in (None, found[0]["pid"]):
            return None, Path()
        self._flight = found[0]
        return found

    def _look_for_the_culprit(self, folder: Path, flight: dict[str, Any], reason: str) -> None:
        from vcr_core.engine.suspects import Suspects

        batch = flight["batch"]
        count = self._at_batch[folder, batch] = self._at_batch.get((folder, batch), 0) + 1
        suspects = Suspects(folder, self.name)
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
            self._deaths = self._at_batch[folder, batch] = 0
