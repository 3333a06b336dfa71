"""The worker's side of the process executor: what it is told, what it says, when it ends."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core.executors.lanes import work_through
from vcr_core.protocols import ShardTask

if TYPE_CHECKING:
    from vcr_core.protocols import ShardStatus


def serve() -> None:
    """Do the lane that the parent names on stdin, and tell it how each shard ends."""
    tasks = read_tasks(sys.stdin.buffer.readline())
    tell = attach()
    for status in work_through(tasks):
        tell(status)


def attach() -> Callable[[ShardStatus], None]:
    """Tie this process to the one that started it and return how to tell it a status.

    From now on stdout is where stderr is, the log: the pipe to the parent carries statuses and
    nothing that components print. When the parent dies, its end of stdin closes and this process
    ends: the batch in hand is lost rather than written twice, by an orphan and by the resumed run.
    """
    pipe = os.dup(1)
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, name="vcr-parent", daemon=True).start()

    def tell(status: ShardStatus) -> None:
        said = {"folder": str(status.task.folder), "ok": status.ok, "message": status.message}
        os.write(pipe, json.dumps(said).encode() + b"\n")

    return tell


def tasks_line(tasks: Sequence[ShardTask]) -> bytes:
    """Return shards as the line that a worker reads."""
    return json.dumps([{**asdict(t), "folder": str(t.folder)} for t in tasks]).encode() + b"\n"


def read_tasks(line: bytes) -> list[ShardTask]:
    """Return the shards of a line of :func:`tasks_line`."""
    return [ShardTask(**{**task, "folder": Path(task["folder"])}) for task in json.loads(line)]


def statuses_in(said: bytes) -> Iterator[dict[str, Any]]:
    """Yield what a worker told; a line that its death cut off is left out."""
    for line in said.splitlines(keepends=True):
        if line.endswith(b"\n"):
            yield json.loads(line)


def _end_with_parent() -> None:
    while os.read(0, 1024):
        pass
    os._exit(1)
