"""Who has which batch in hand: locks that the system takes away from a process that ends.

Byte ``k`` of one small file stands for batch ``k``, and working on a batch means holding the lock
of its byte. So any number of processes, on one machine or on several that share a file system, may
work on one run: none does what another one does, and what a dead one held is free at once. No
clock and no list of living processes is involved.
"""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from vcr_core.closing import Closing
from vcr_core.storage import writing

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    pass

logger = logging.getLogger(__name__)

_TAKEN = (errno.EAGAIN, errno.EACCES)
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


def claims_path(folder: Path) -> Path:
    """Return the file whose bytes stand for the batches of a run."""
    return Path(folder) / "logs" / "batches.lock"


class Claims(Closing):
    """The claims of this process on batches of one run.

    Locks of this kind belong to a process and end when it closes the file anywhere: a process
    opens at most one of these for a run at a time.

    Args:
        folder: the run folder.
    """

    def __init__(self, folder: Path) -> None:
        path = claims_path(folder)
        self._path = path
        self._handle: int | None = None
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if fcntl is not None:
                self._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)

    def take(self, batch: int) -> bool:
        """Return whether this process has the batch now; never waits.

        Where the file system has no locks everything is granted, with one warning.
        """
        if self._handle is None:
            return True
        try:
            fcntl.lockf(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, batch)
        except OSError as error:
            if error.errno in _TAKEN:
                return False
            if error.errno not in _NO_LOCKS:
                raise
            logger.warning(
                "%s: this file system has no locks (%s); two processes that work on this run at "
                "once would do the same batches", self._path, error.strerror,
            )  # fmt: skip
            self.close()
        return True

    def leave(self, batch: int) -> None:
        """Give the batch free."""
        if self._handle is not None:
            fcntl.lockf(self._handle, fcntl.LOCK_UN, 1, batch)

    def close(self) -> None:
        """Give everything free; a second call does nothing."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
