"""A lane as a job of a cluster that may be stopped at any time and started again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core.executors.attendant import Attendant
from vcr_core.executors.attending import attend
from vcr_core.executors.lanes import INTERRUPTED, Lane

if TYPE_CHECKING:
    from vcr_core.protocols import ShardStatus, ShardTask


@dataclass(frozen=True, slots=True)
class LaneJob:
    """What runs inside a job: the worker process of a lane, with its attendant.

    Attributes:
        tasks: the lane.
        board: file to which the status of each shard is added, for whoever submitted the job.
        patience: times that it may be requeued without a new record.
        stalled: times that it has been.
        written: bytes of records when it was requeued last.
    """

    tasks: Sequence[ShardTask]
    board: Path
    patience: int = 0
    stalled: int = 0
    written: int = -1

    def __call__(self) -> None:
        """Do what is left of the lane; what has been posted is left out."""
        posted = {said["folder"] for said in read_board(self.board)}
        tasks = [task for task in self.tasks if str(task.folder) not in posted]
        if not tasks:
            return
        for status in attend([Attendant(Lane(tasks))]):
            # Asked to stop is not ended: the job is requeued, or whoever stopped it knows.
            if status.message != INTERRUPTED:
                post(self.board, status)

    def checkpoint(self) -> Any:
        """Return what to requeue when the time is up; ``None`` where that would be in vain."""
        import submitit

        written = Lane(self.tasks).bytes_written()
        stalled = self.stalled + 1 if written == self.written else 0
        if stalled > self.patience:
            for status in Lane(self.tasks).settle_all(
                f"no batch came to its end in {stalled} times of executor.time; raise it, or lower "
                "runtime.batch_videos in a new results folder"
            ):
                post(self.board, status)
            return None
        return submitit.helpers.DelayedSubmission(replace(self, stalled=stalled, written=written))


def post(board: Path, status: ShardStatus) -> None:
    """Add a status to a board."""
    said = {"folder": str(status.task.folder), "ok": status.ok, "message": status.message}
    handle = os.open(board, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        os.write(handle, json.dumps(said).encode() + b"\n")
        os.fsync(handle)
    finally:
        os.close(handle)


def read_board(board: Path) -> Iterator[dict[str, Any]]:
    """Yield the statuses on a board; a line that is being written is left out."""
    try:
        data = board.read_bytes()
    except FileNotFoundError:
        return
    for line in data.splitlines(keepends=True):
        if line.endswith(b"\n"):
            yield json.loads(line)
