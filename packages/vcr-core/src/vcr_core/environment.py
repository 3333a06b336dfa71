"""Facts about the machine and the software a run used; nothing heavy is imported for them."""

from __future__ import annotations

import functools
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import importlib_metadata
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import ModuleType

_GIT_TIMEOUT_S = 10
_NVIDIA_VERSION = Path("/proc/driver/nvidia/version")


def environment(distributions: Iterable[str] = (), *, with_torch: bool = False) -> dict[str, Any]:
    """Return what ``run.json`` says about this machine.

    Args:
        distributions: names of the distributions that take part, as the plugins of a run; their
            requirements are found from installed metadata.
        with_torch: import torch to ask it; otherwise torch is asked only if it is imported.

    Returns:
        ``python, implementation, platform, machine, cpus, versions, torch, decoder, git``; parts
        that do not exist here are ``None``.
    """
    if with_torch:
        import torch

        torch_module: ModuleType | None = torch
    else:
        torch_module = sys.modules.get("torch")
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "versions": dict(_versions_once(frozenset({"vcr-core", *distributions}))),
        "torch": None if torch_module is None else _torch_facts(torch_module),
        "decoder": _decoder_facts(sys.modules.get("av")),
        "git": git_state(Path.cwd()),
    }


def command_line(argv: Sequence[str] | None = None) -> list[str]:
    """Return the command line with the bare name of its program, whose folder says nothing."""
    words = list(sys.argv if argv is None else argv)
    return [Path(words[0]).name, *words[1:]] if words else []


def versions(distributions: Iterable[str]) -> dict[str, str]:
    """Return the versions of distributions and of all installed distributions they need.

    Requirements behind extras of ``distributions`` themselves are followed if they are installed,
    because then they may be used.

    Example:
        >>> "msgspec" in versions(["vcr-core"])
        True
    """
    found: dict[str, str] = {}
    waiting: list[str] = [canonicalize_name(name) for name in distributions]
    asked, seen = frozenset(waiting), set(waiting)
    while waiting:
        name = waiting.pop()
        try:
            distribution = importlib_metadata.distribution(name)
        except importlib_metadata.PackageNotFoundError:
            continue
        found[name] = distribution.version
        extras = distribution.metadata.get_all("Provides-Extra") or []
        for needed in _requirements(distribution.requires or (), extras if name in asked else ()):
            if needed not in seen:
                seen.add(needed)
                waiting.append(needed)
    return dict(sorted(found.items()))


@functools.cache
def _versions_once(distributions: frozenset[str]) -> dict[str, str]:
    """Return :func:`versions`; a sweep asks for every run, and a process keeps what it imports."""
    return versions(distributions)


def git_state(folder: Path) -> dict[str, Any] | None:
    """Return commit and dirty flag of the repository that ``folder`` is in, if any."""
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return None
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit.strip(), "dirty": None if changes is None else bool(changes.strip())}


def _requirements(texts: Iterable[str], extras: Iterable[str]) -> set[str]:
    names: set[str] = set()
    wanted = [{"extra": extra} for extra in ("", *extras)]
    for text in texts:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        marker = requirement.marker
        if marker is None or any(marker.evaluate(values) for values in wanted):
            names.add(canonicalize_name(requirement.name))
    return names


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            text=True,
            timeout=_GIT_TIMEOUT_S,
            check=False,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _torch_facts(torch: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "version": str(torch.__version__),
        "threads": torch.get_num_threads(),
        "cuda": torch.version.cuda,
        "cudnn": None,
        "driver": None,
        "devices": [],
    }
    if torch.cuda.is_available():
        facts["cudnn"] = torch.backends.cudnn.version()
        facts["driver"] = _nvidia_driver()
        facts["devices"] = [
            torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())
        ]
    return facts


def _nvidia_driver() -> str | None:
    try:
        text = _NVIDIA_VERSION.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r"Kernel Module\D*(\d+(?:\.\d+)+)", text)
    return found.group(1) if found else None


def _decoder_facts(av: Any) -> dict[str, Any] | None:
    if av is None:
        return None
    libraries = {
        name: ".".join(str(part) for part in version)
        for name, version in sorted(getattr(av, "library_versions", {}).items())
    }
    return {"name": "pyav", "version": str(av.__version__), "libraries": libraries}
