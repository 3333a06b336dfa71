"""The worker's side of the process executor: what it says to its parent, and when it ends."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vcr_core.engine.shard import ShardOutcome

KEY = "shard_outcome"


def attach() -> Callable[[ShardOutcome], None]:
    """Tie this process to the one that started it and return how to tell it the outcome.

    From now on stdout is where stderr is, the log: the pipe to the parent carries the outcome and
    nothing that components print. When the parent dies, its end of stdin closes and this process
    ends: the batch in hand is lost rather than written twice, by an orphan and by the resumed run.
    """
    pipe = os.dup(1)
    os.dup2(2, 1)
    threading.Thread(target=_end_with_parent, name="vcr-parent", daemon=True).start()

    def tell(outcome: ShardOutcome) -> None:
        os.write(pipe, json.dumps({KEY: asdict(outcome)}).encode())
        os.close(pipe)

    return tell


def outcome_in(said: bytes) -> dict[str, Any] | None:
    """Return what a worker told; one that died said nothing."""
    try:
        found: dict[str, Any] = json.loads(said)[KEY]
    except ValueError:
        return None
    return found


def _end_with_parent() -> None:
    while os.read(0, 1024):
        pass
    os._exit(1)
