"""How much memory something takes and how much there is: of a GPU, or of a process on Linux."""

from __future__ import annotations

import ctypes
import gc
import platform
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import torch

from vcr_core.errors import ComponentUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")
_RESET_PEAK = "5"
"""What ``/proc/self/clear_refs`` takes for: forget the highest resident size."""


class MemoryMeter(Protocol):
    """Numbers are bytes."""

    name: str
    """The device."""

    def total(self) -> int:
        """Return what the device has, or this process may use of it."""
        ...

    def free(self) -> int:
        """Return what could be allocated now."""
        ...

    def peak(self, run: Callable[[], None]) -> int:
        """Return by how much memory grows at most while ``run`` is at work."""
        ...


def meter_of(device: torch.device) -> MemoryMeter:
    """Return what measures the memory of a device.

    Raises:
        ComponentUnavailable: where memory cannot be measured.
    """
    return CudaMeter(device) if device.type == "cuda" else ProcessMeter()


class CudaMeter:
    """A GPU by the counters of torch's allocator."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self.name = torch.cuda.get_device_name(device)

    def total(self) -> int:
        """Return the memory of the GPU."""
        return torch.cuda.mem_get_info(self._device)[1]

    def free(self) -> int:
        """Return what no process uses, with what the allocator holds for no tensor."""
        held = torch.cuda.memory_reserved(self._device) - torch.cuda.memory_allocated(self._device)
        return torch.cuda.mem_get_info(self._device)[0] + held

    def peak(self, run: Callable[[], None]) -> int:
        """Return the growth of the allocated bytes."""
        torch.cuda.synchronize(self._device)
        torch.cuda.reset_peak_memory_stats(self._device)
        before = torch.cuda.memory_allocated(self._device)
        run()
        torch.cuda.synchronize(self._device)
        return torch.cuda.max_memory_allocated(self._device) - before


class ProcessMeter:
    """This process by its resident size, on Linux with glibc.

    Blocks that were freed stay with the process and would hide what is allocated next, so they are
    given back before every measurement.

    Raises:
        ComponentUnavailable: elsewhere, or where the system does not let it reset the peak.
    """

    def __init__(self) -> None:
        self.name = f"CPU {platform.machine()}"
        problem = "" if platform.libc_ver()[0] == "glibc" else "this is no Linux with glibc"
        if not problem:
            try:
                self._reset()
            except OSError as error:
                problem = f"/proc/self/clear_refs: {error.strerror}"
        if problem:
            raise ComponentUnavailable(
                f"the memory of a process cannot be measured here ({problem}); give numbers for "
                "runtime.chunk_clips and runtime.batch_videos instead of 'auto'"
            )

    def total(self) -> int:
        """Return the memory of the machine, or of the control group where that is less."""
        return min([_kilobytes(_PROC / "meminfo", "MemTotal"), *(top for top, _ in _limits())])

    def free(self) -> int:
        """Return what the machine has left, or the control group where that is less."""
        left = [max(0, top - used) for top, used in _limits()]
        return min([_kilobytes(_PROC / "meminfo", "MemAvailable"), *left])

    def peak(self, run: Callable[[], None]) -> int:
        """Return the growth of the resident size."""
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        self._reset()
        before = self._status("VmRSS")
        run()
        return max(0, self._status("VmHWM") - before)

    def _reset(self) -> None:
        (_PROC / "self" / "clear_refs").write_text(_RESET_PEAK, encoding="ascii")

    def _status(self, name: str) -> int:
        return _kilobytes(_PROC / "self" / "status", name)


def _kilobytes(path: Path, name: str) -> int:
    """Return the bytes of the line ``name:  <number> kB``."""
    for line in path.read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise ComponentUnavailable(f"{path} does not say {name}")


def _limits() -> Iterator[tuple[int, int]]:
    """Yield limit and use of every control group around this process that has a limit.

    Batch systems limit their jobs in this way, and the machine's own numbers do not show it.
    """
    for line in _own_groups():
        _, controllers, place = line.split(":", 2)
        if controllers == "":
            root, names = _CGROUPS, ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            root, names = _CGROUPS / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        group = root / place.strip("/")
        for folder in (group, *group.parents):
            if folder == root.parent:
                break
            # Absent in the root group; "max" where there is no limit.
            with suppress(OSError, ValueError):
                top, used = (int((folder / name).read_text(encoding="ascii")) for name in names)
                yield top, used


def _own_groups() -> list[str]:
    with suppress(OSError):
        return (_PROC / "self" / "cgroup").read_text(encoding="utf-8").splitlines()
    return []
