"""Keeping freed memory with the process where that is cheaper; knowing when there is too little."""

from __future__ import annotations

import ctypes
import functools
import platform

import torch

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's ``mallopt`` parameters."""

_TRIM_BYTES = 1 << 30
_MMAP_BYTES = 32 << 20
"""glibc's own upper limit for the blocks that it keeps in the heap."""


@functools.cache
def keep_freed_memory() -> bool:
    """Tell glibc to keep freed blocks; return whether that was possible.

    An attack frees and allocates tensors of the video's size at every step. By default glibc hands
    such blocks back to the system and gets them anew, page fault by page fault: 5 to 10 % of the
    time of a gradient step of the bundled models. The process then stays at its peak size.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(_MMAP_THRESHOLD, _MMAP_BYTES)) and bool(
        mallopt(_TRIM_THRESHOLD, _TRIM_BYTES)
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an exception says that memory, of whatever device, was short."""
    return isinstance(error, MemoryError | torch.cuda.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
    )
