"""One worker process per device, or several CPU workers that share the cores."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from vcr_core.engine.setup import choose_device
from vcr_core.engine.stopping import graceful_stop
from vcr_core.executors.attendant import Attendant
from vcr_core.executors.lanes import Lane, lanes_of

if TYPE_CHECKING:
    from vcr_core.protocols import ShardStatus, ShardTask

POLL_S = 0.1


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


def attend(workers: Sequence[Attendant]) -> Iterator[ShardStatus]:
    """Look after workers until all have ended; Ctrl-C and SIGTERM ask them to stop."""
    try:
        with graceful_stop() as stop:
            for worker in workers:
                worker.start()
            told = False
            while any(worker.process for worker in workers):
                if stop.asked and not told:
                    told = True
                    for worker in workers:
                        worker.stop()
                for worker in workers:
                    yield from worker.look_after(stopping=stop.asked)
                time.sleep(POLL_S)
    finally:
        for worker in workers:
            worker.kill()
