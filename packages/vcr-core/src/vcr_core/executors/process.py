"""One worker process per device, or several CPU workers that share the cores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from vcr_core.engine.setup import choose_device
from vcr_core.executors.attendant import Attendant
from vcr_core.executors.attending import attend
from vcr_core.executors.lanes import Lane, lanes_of

if TYPE_CHECKING:
    from vcr_core.protocols import ShardStatus, ShardTask


class ProcessExecutor:
    """Starts a worker process for each lane, restarts what dies, isolates culprits."""

    def run(self, shards: Sequence[ShardTask]) -> Iterator[ShardStatus]:
        """Yield a status as each shard ends.

        Raises:
            ComponentUnavailable: for a device that is not here.
        """
        for device in dict.fromkeys(task.device for task in shards):
            choose_device(device)
        yield from attend([Attendant(Lane(tasks)) for tasks in lanes_of(shards)])
