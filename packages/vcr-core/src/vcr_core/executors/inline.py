"""Shards one after the other, in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vcr_core.protocols import ShardStatus, ShardTask


class InlineExecutor:
    """Runs shards here; the simplest executor and the one the others are compared with."""

    def capacity(self) -> int:
        """Return 1: there is one process."""
        return 1

    def run(self, shards: Sequence[ShardTask]) -> Iterator[ShardStatus]:
        """Yield a status as each shard ends."""
        from vcr_core.executors.lanes import work_through

        yield from work_through(shards)
