"""Which processes work on a run, from what they leave in its ``logs`` folder."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vcr_core.engine.flight import LOGS_FOLDER, PREFIX, SUFFIX

SILENT_S = 3600.0
"""A process that cannot be asked and has said nothing for so long counts as gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A process that evaluates videos of a run.

    Attributes:
        share: the share of the run that it works on, such as ``0of4``.
        pid: process id on its machine.
        host: name of its machine, ``None`` if it does not say.
        stage: what it does to the batch, such as ``attack``.
        batch: number of the batch.
        videos: how many videos it has in hand.
        since_s: seconds since it began that stage; 0 if its clock is ahead of ours.
    """

    share: str
    pid: int
    host: str | None
    stage: str
    batch: int | None
    videos: int
    since_s: float


def workers(folder: Path, *, now: float, silent_s: float = SILENT_S) -> tuple[Worker, ...]:
    """Return the processes that are working on the run in ``folder``, by share.

    A process that was killed leaves its file behind. On this machine it is looked for; one of
    another machine, or of an unknown one, counts while it is not silent for too long.

    Args:
        folder: a run folder.
        now: seconds since the epoch.
        silent_s: for how long a process elsewhere may stay at one stage.
    """
    try:
        with os.scandir(folder / LOGS_FOLDER) as entries:
            names = sorted(e.name for e in entries if e.name.startswith(PREFIX))
    except OSError:
        return ()
    found = (_read(folder / LOGS_FOLDER / name, now) for name in names if name.endswith(SUFFIX))
    return tuple(worker for worker in found if worker and _is_there(worker, silent_s))


def _read(path: Path, now: float) -> Worker | None:
    """Return what a file says; ``None`` if it is gone by now or says nothing useful."""
    try:
        said: Any = json.loads(path.read_text(encoding="utf-8"))
        videos = said["videos"]
        return Worker(
            share=path.name[len(PREFIX) : -len(SUFFIX)],
            pid=int(said["pid"]),
            host=str(said["host"]) if said.get("host") else None,
            stage=str(said.get("stage") or ""),
            batch=said["batch"] if isinstance(said.get("batch"), int) else None,
            videos=len(videos) if isinstance(videos, list) else 0,
            since_s=round(max(0.0, now - float(said["since"])), 1),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _is_there(worker: Worker, silent_s: float) -> bool:
    here = worker.host == platform.node()
    exists = _exists(worker.pid) if here or worker.host is None else None
    if here and exists is not None:
        return exists
    return bool(exists) or worker.since_s <= silent_s


def _exists(pid: int) -> bool | None:
    """Return whether a process of this machine has that id; ``None`` where one cannot ask."""
    if os.name == "nt":
        return None  # there, signal 0 ends a process
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True  # somebody else's
    return True
