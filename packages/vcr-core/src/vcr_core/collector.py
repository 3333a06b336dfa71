"""Holding Python's cycle collector off while many records are in memory."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Look for no reference cycles inside the block.

    Records are trees, which need no such search; walking through all of them over and over took a
    quarter of the time of a report of 100,000 records. For commands, which end soon after.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
