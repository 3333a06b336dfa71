"""What ``vcr doctor`` looks at; nothing heavy is imported unless it is asked for."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import sys
import tempfile
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core.availability import availability, installed_version
from vcr_core.errors import ComponentUnavailable
from vcr_core.folders import cache_folder
from vcr_core.plugins import Registry, load_registry
from vcr_core.refs import normal_distribution

if TYPE_CHECKING:
    from collections.abc import Iterator

LIBRARIES = (
    "torch", "torchvision", "numpy", "av", "msgspec", "pluggy", "click", "rich",
    "importlib-metadata", "jinja2", "pillow", "pyarrow", "submitit", "ray",
)  # fmt: skip


@dataclass(slots=True)
class Checkup:
    """What was found.

    Attributes:
        system: Python, platform, folders.
        distributions: plugins by name: version, location, number of components.
        libraries: installed versions; ``None`` for what is not installed.
        devices: what is known about torch and CUDA.
        video: decoder and ffmpeg.
        failures: plugins that could not be loaded, with tracebacks.
        unavailable: components whose requirements are missing.
        problems: what is wrong.
        advice: what to do, one line each.
    """

    system: dict[str, str] = field(default_factory=dict)
    distributions: dict[str, dict[str, Any]] = field(default_factory=dict)
    libraries: dict[str, str | None] = field(default_factory=dict)
    devices: dict[str, Any] = field(default_factory=dict)
    video: dict[str, str | None] = field(default_factory=dict)
    failures: list[dict[str, str]] = field(default_factory=list)
    unavailable: list[dict[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)


def check(*, deep: bool = False) -> Checkup:
    """Look at this installation.

    Args:
        deep: also import torch and every component.
    """
    found = Checkup()
    registry = load_registry()
    _system(found)
    _plugins(found, registry)
    _components(found, registry)
    _video(found)
    _devices(found, deep=deep)
    if deep:
        _imports(found, registry)
    return found


def _system(found: Checkup) -> None:
    folder = cache_folder()
    found.system = {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": str(os.cpu_count() or "unknown"),
        "cache": str(folder),
    }
    problem = _unwritable(folder)
    found.system["cache_writable"] = "no" if problem else "yes"
    if problem:
        found.problems.append(f"the cache folder {folder} cannot be written to: {problem}")
        found.advice.append("set VCR_CACHE_DIR to a folder that you may write to")
    found.libraries = {name: installed_version(name) for name in LIBRARIES}


def _unwritable(folder: Path) -> str:
    """Return why nothing can be written to a folder, or ``""``; leaves no trace."""
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    try:
        with tempfile.TemporaryFile(dir=existing):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def _plugins(found: Checkup, registry: Registry) -> None:
    for plugin in registry.plugins:
        count = sum(e.distribution == plugin.distribution for e in registry.entries())
        found.distributions[plugin.distribution] = {
            "version": plugin.version,
            "location": plugin.location,
            "components": count,
        }
    for failure in registry.failures:
        found.failures.append(
            {
                "distribution": failure.distribution,
                "version": failure.version,
                "location": failure.location,
                "entry_point": failure.value,
                "stage": failure.stage,
                "headline": failure.headline,
                "error": failure.reason,
                "traceback": "".join(traceback.format_exception(failure.error)),
            }
        )
        found.problems.append(
            f"plugin {failure.distribution} {failure.version} could not be loaded: "
            f"{failure.headline}: {failure.reason}"
        )
        found.advice.append(
            f"repair or uninstall {failure.distribution}, or set "
            f"VCR_DISABLE_PLUGINS={failure.distribution}"
        )
    for copy in registry.copies:
        found.advice.append(
            f"metadata of {copy.distribution} {copy.version} in {copy.location} is hidden by "
            f"another copy; reinstall {copy.distribution} to remove it"
        )
    wanted_out = os.environ.get("VCR_DISABLE_PLUGINS", "")
    for name in (normal_distribution(part) for part in wanted_out.split(",") if part.strip()):
        if name not in registry.disabled:
            found.advice.append(f"VCR_DISABLE_PLUGINS names {name!r}, which is no plugin here")
    if registry.disabled:
        found.system["disabled"] = ", ".join(registry.disabled)


def _components(found: Checkup, registry: Registry) -> None:
    extras: dict[str, list[str]] = {}
    for entry in registry.entries():
        state = availability(entry.spec)
        if not state.ok:
            found.unavailable.append(
                {"kind": entry.kind, "component": entry.qualified, "availability": state.text}
            )
            extra = entry.spec.extra or ", ".join(entry.spec.requires)
            extras.setdefault(extra, []).append(f"{entry.kind}/{entry.name}")
    for extra, names in sorted(extras.items()):
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        found.advice.append(f"pip install '{extra}' brings {shown}")
    ambiguous = {(e.kind, e.name) for e in registry.entries() if registry.ambiguous(e.kind, e.name)}
    for kind, name in sorted(ambiguous):
        owners = [e.qualified for e in registry.entries(kind) if e.name == name]
        found.advice.append(f"{kind} {name!r} is ambiguous; write one of: {', '.join(owners)}")


def _video(found: Checkup) -> None:
    found.video = {"av": installed_version("av"), "ffmpeg": shutil.which("ffmpeg")}
    if found.video["av"] is None:
        found.advice.append("pip install 'vcr-core[engine]' brings the video decoder (av)")


def _devices(found: Checkup, *, deep: bool) -> None:
    version = found.libraries["torch"]
    driver = Path("/proc/driver/nvidia/version").exists() or shutil.which("nvidia-smi") is not None
    found.devices = {"torch": version, "nvidia_driver": driver}
    if version is None:
        found.advice.append("pip install 'vcr-core[engine]' brings torch, which runs need")
        return
    if driver and "+cpu" in version:
        found.advice.append(
            f"torch {version} is built without CUDA, but this machine has an NVIDIA driver"
        )
    if not deep:
        return
    try:
        import torch
    except Exception as error:  # plugin loader: a broken torch must be reported # noqa: BLE001
        found.problems.append(
            f"torch {version} cannot be imported: {type(error).__name__}: {error}"
        )
        found.advice.append("reinstall torch")
        return
    cuda = torch.cuda.is_available()
    found.devices["cuda"] = torch.version.cuda
    found.devices["cuda_available"] = cuda
    found.devices["names"] = [
        torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count() if cuda else 0)
    ]
    found.devices["threads"] = torch.get_num_threads()
    if driver and not cuda:
        found.advice.append("there is an NVIDIA driver, but torch does not see a device")


def _imports(found: Checkup, registry: Registry) -> None:
    from vcr_core.components import load_attr, params_type

    for entry in registry.entries():
        if not availability(entry.spec).ok:
            continue
        with _recorded(found):
            load_attr(entry.spec.target, entry)
            params_type(entry.spec)


@contextlib.contextmanager
def _recorded(found: Checkup) -> Iterator[None]:
    try:
        yield
    except ComponentUnavailable as error:
        found.problems.append(" ".join(str(error).split()))
