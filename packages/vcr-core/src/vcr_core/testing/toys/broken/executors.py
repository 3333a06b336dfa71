"""Executors with the faults of schedulers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vcr_core.protocols import ShardStatus, ShardTask


class NeverRuns:
    """Reports success without running anything."""

    def run(self, shards: Sequence[ShardTask]) -> Iterator[ShardStatus]:
        """Yield a good status for each shard."""
        for task in shards:
            yield ShardStatus(task, ok=True)


class DropsLast:
    """Loses the last shard, as zipping shards of unequal length does."""

    def run(self, shards: Sequence[ShardTask]) -> Iterator[ShardStatus]:
        """Run all but the last shard of several."""
        for number, task in enumerate(shards):
            if number == 0 or number < len(shards) - 1:
                _run(task)
            yield ShardStatus(task, ok=True)


class LosesRuns:
    """Knows shards by their index alone, as a queue that never saw a sweep does."""

    def run(self, shards: Sequence[ShardTask]) -> Iterator[ShardStatus]:
        """Run the last one of those with an index."""
        for task in {task.index: task for task in shards}.values():
            _run(task)
            yield ShardStatus(task, ok=True)


class WritesAgain:
    """Does finished videos again, as a requeued job without a memory does."""

    def run(self, shards: Sequence[ShardTask]) -> Iterator[ShardStatus]:
        """Run each shard and append its records a second time."""
        for task in shards:
            _run(task)
            for part in sorted((task.folder / "records").glob("*.jsonl")):
                with part.open("ab") as file:
                    file.write(part.read_bytes())
            yield ShardStatus(task, ok=True)


def _run(task: ShardTask) -> None:
    from vcr_core.config.resolve import resolve_run
    from vcr_core.engine.machine import run_document
    from vcr_core.engine.shard import run_shard

    run_shard(task, resolve_run(run_document(task.folder)).experiment)
