"""Feeds progress from the record files of a run, whichever process writes them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vcr_core.engine.run import Run
    from vcr_core.progress import Progress

POLL_S = 0.5


@contextmanager
def watched(run: Run, progress: Progress) -> Iterator[None]:
    """Show the records that appear in the run's folder while the block runs."""
    tail = RecordTail(run.folder)
    tail.new()  # what was there before
    progress.started(total=run.total, done=run.total - run.missing)
    ended = threading.Event()

    def follow() -> None:
        while not ended.wait(POLL_S):
            show()

    def show() -> None:
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
