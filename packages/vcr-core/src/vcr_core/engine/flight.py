"""What each worker says it is doing, for whoever watches it or finds it dead."""

from __future__ import annotations

import json
import logging
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

LOGS_FOLDER = "logs"
PREFIX, SUFFIX = "flight-", ".json"


class Flight:
    """A small file that names the videos that a worker has in hand, and their stage.

    Args:
        folder: the run folder.
        name: name of the share, ``<k>of<n>``.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._path = flight_path(folder, name)
        self._silent = False
        self.batch = -1

    def stage(self, stage: str, videos: Sequence[str]) -> None:
        """Say that ``stage`` begins for ``videos``."""
        said = {
            "batch": self.batch,
            "stage": stage,
            "videos": list(videos),
            "host": platform.node(),
            "pid": os.getpid(),
            "since": time.time(),
        }
        # Replaced whole, but not forced to the disk: it need not outlive the machine.
        fresh = self._path.with_suffix(".new")
        try:
            fresh.write_text(json.dumps(said), encoding="utf-8")
            fresh.replace(self._path)
        except OSError as error:
            # Nobody's video fails because this cannot be said; records that cannot be written end
            # the share.
            if not self._silent:
                logger.warning("%s: cannot be written: %s", self._path, error)
            self._silent = True

    def clear(self) -> None:
        """Say that nothing is in hand."""
        self._path.unlink(missing_ok=True)


def flight_path(folder: Path, name: str) -> Path:
    """Return where the worker of a share says what it is doing."""
    return Path(folder) / LOGS_FOLDER / f"{PREFIX}{name}{SUFFIX}"


def read_flight(folder: Path, name: str) -> dict[str, Any] | None:
    """Return what a worker was doing when it was last seen, or ``None``."""
    try:
        found: dict[str, Any] = json.loads(flight_path(folder, name).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return found
