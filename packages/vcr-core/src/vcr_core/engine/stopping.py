"""Ctrl-C and SIGTERM: finish the batch in hand, then stop."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

logger = logging.getLogger(__name__)


class StopRequest:
    """Whether somebody asked to stop."""

    def __init__(self) -> None:
        self.asked = False


@contextmanager
def graceful_stop() -> Iterator[StopRequest]:
    """Turn the first SIGINT or SIGTERM into a request, the second SIGINT into an interrupt."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def handle(number: int, _frame: FrameType | None) -> None:
        if request.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        if not request.asked:
            request.asked = True
            logger.warning("stopping after the batch in hand; Ctrl-C stops at once")

    previous = {s: signal.signal(s, handle) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
