"""Looking after several workers at once, whoever runs them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from vcr_core.engine.stopping import graceful_stop

if TYPE_CHECKING:
    from vcr_core.protocols import ShardStatus

POLL_S = 0.1


class Watched(Protocol):
    """The worker of a lane, as whoever started it sees it."""

    @property
    def is_going_on(self) -> bool:
        """Whether it is there, or will be started again."""
        ...

    def start(self) -> None:
        """Start it on what is left of its lane."""
        ...

    def stop(self) -> None:
        """Ask it to end after the batch in hand."""
        ...

    def look_after(self, *, stopping: bool) -> Iterator[ShardStatus]:
        """Yield what has been settled since the last look; start one that died again."""
        ...

    def kill(self) -> None:
        """End it at once; a second call does nothing."""
        ...


def attend(workers: Sequence[Watched], poll_s: float = POLL_S) -> Iterator[ShardStatus]:
    """Start workers and look after them until all have ended.

    The first Ctrl-C or SIGTERM asks them to stop, the second Ctrl-C ends them.

    Args:
        workers: one a lane.
        poll_s: seconds between two looks.
    """
    try:
        with graceful_stop() as stop:
            for worker in workers:
                worker.start()
            told = False
            while any(worker.is_going_on for worker in workers):
                if stop.asked and not told:
                    told = True
                    for worker in workers:
                        worker.stop()
                for worker in workers:
                    yield from worker.look_after(stopping=stop.asked)
                time.sleep(poll_s)
    finally:
        for worker in workers:
            worker.kill()
