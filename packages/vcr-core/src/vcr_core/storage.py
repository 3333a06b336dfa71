"""Words for what a file system refuses: a full disk, a folder that cannot be written to."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING

from vcr_core.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LOCKED = (errno.EROFS, errno.EACCES, errno.EPERM)


class StorageRefused(StoreError, OSError):
    """The system would not write: nothing that comes after would be stored, either.

    Args:
        path: what could not be written.
        reason: what the system says; ``strerror``, as of any ``OSError``.
        advice: what to do.
    """

    def __init__(self, path: Path | str, reason: str, advice: str = "") -> None:
        super().__init__(f"{path}: cannot be written: {reason}{advice}")
        self.strerror = reason


@contextmanager
def writing(path: Path | str) -> Iterator[None]:
    """Say what to do where the system refuses to write ``path`` inside the block.

    Raises:
        StorageRefused: instead of any other ``OSError``.
    """
    try:
        yield
    except StorageRefused:
        raise
    except OSError as error:
        advice = ""
        if error.errno in _FULL:
            advice = "; make room and give the same command again: what has been recorded stays"
        elif error.errno in _LOCKED:
            advice = "; use a folder that you may write to, such as with --results"
        reason = error.strerror or str(error)
        raise StorageRefused(path, reason, advice) from error
