"""Shards one after the other, in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from vcr_core.protocols import ShardStatus

if TYPE_CHECKING:
    from vcr_core.executors.params import ExecutorParams
    from vcr_core.protocols import ShardTask


class InlineExecutor:
    """Runs shards here; the simplest executor and the one the others are compared with."""

    def __init__(self, params: ExecutorParams) -> None:
        self.params = params

    def run(self, shards: Sequence[ShardTask]) -> Iterator[ShardStatus]:
        """Yield a status as each shard ends."""
        from vcr_core.config.resolve import resolve_run
        from vcr_core.engine.machine import run_document
        from vcr_core.engine.shard import run_shard

        for task in shards:
            experiment = resolve_run(run_document(task.folder)).experiment
            outcome = run_shard(task, experiment)
            message = "interrupted" if outcome.interrupted else outcome.stopped
            yield ShardStatus(task, ok=not message, message=message)
