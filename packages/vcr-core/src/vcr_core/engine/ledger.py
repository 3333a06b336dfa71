"""Which batches of a run are done, kept up to date while other processes work on it, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vcr_core.plan import batch_is_done
from vcr_core.records import latest, next_attempts, read_records
from vcr_core.watching import RecordTail

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Ledger:
    """The records of a run as far as they decide what is left to do.

    Args:
        folder: the run folder.
        batches: the planned cut.
        retry_below: errors of attempts below this number do not count as done.
    """

    def __init__(
        self, folder: Path, batches: Sequence[Sequence[str]], retry_below: int = 0
    ) -> None:
        self._tail = RecordTail(folder)
        self._tail.skip()
        self._batches = batches
        self._retry_below = retry_below
        self._last = {record["video"]: _essence(record) for record in read_records(folder)}

    def refresh(self) -> None:
        """Read what has been written since the last look, by whomever."""
        new = latest([*self._last.values(), *map(_essence, self._tail.new())])
        self._last = {record["video"]: record for record in new}

    def is_done(self, batch: int) -> bool:
        """Return whether nothing is left to do of a batch."""
        return batch_is_done(self._batches[batch], self._last, retry_below=self._retry_below)

    def attempt(self, batch: int) -> int:
        """Return the number of the next attempt at a batch."""
        known = [self._last[video] for video in self._batches[batch] if video in self._last]
        return max([1, self._retry_below, *next_attempts(known).values()])


def _essence(record: dict[str, Any]) -> dict[str, Any]:
    return {key: record.get(key) for key in ("video", "batch", "attempt", "status")}
