"""Feeds progress from the record files of a run, whichever process writes them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vcr_core.engine.run import Run
    from vcr_core.progress import Progress

POLL_S = 0.5
POLL_A_RUN_S = 0.01
"""More for every run that is watched: looking costs a few calls to the file system each."""


@contextmanager
def watched(runs: Sequence[Run], progress: Progress) -> Iterator[None]:
    """Show the records that appear in the runs' folders while the block runs."""
    tails = [RecordTail(run.folder) for run in runs]
    for tail in tails:
        tail.skip()
    total = sum(run.total for run in runs)
    progress.started(total=total, done=total - sum(run.missing for run in runs))
    ended = threading.Event()

    def follow() -> None:
        while not ended.wait(max(POLL_S, POLL_A_RUN_S * len(tails))):
            show()

    def show() -> None:
        for tail in tails:
            for record in tail.new():
                progress.record(record)
        progress.batch()

    thread = threading.Thread(target=follow, name="vcr-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        show()
        progress.finished()


class RecordTail:
    """Reads what was appended to the record files of a run since the last look.

    Args:
        folder: the run folder.
    """

    def __init__(self, folder: Path) -> None:
        self._records = folder / "records"
        self._read: dict[Path, int] = {}

    def skip(self) -> None:
        """Pass over the complete lines that are there."""
        for path in self._records.glob("*.jsonl"):
            self._read[path] = path.read_bytes().rfind(b"\n") + 1

    def new(self) -> list[dict[str, Any]]:
        """Return the complete new lines as records."""
        found: list[dict[str, Any]] = []
        for path in sorted(self._records.glob("*.jsonl")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                data = file.read()
            whole = data.rfind(b"\n") + 1
            self._read[path] = self._read.get(path, 0) + whole
            found += [json.loads(line) for line in data[:whole].splitlines()]
        return found
