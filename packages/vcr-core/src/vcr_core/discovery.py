"""Which entry points of group ``vcr`` are installed, found without importing any of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import importlib_metadata

from vcr_core.refs import normal_distribution

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUP = "vcr"

# Releases of importlib_metadata disagree on the class that `distributions` yields.
_Distribution: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Found:
    """One entry point and where it comes from.

    Attributes:
        distribution: normalised name of the distribution.
        version: its version, or ``"unknown"``.
        location: the folder on the import path that holds its metadata.
        name: name of the entry point.
        value: its value, ``package.module``.
        point: the entry point, or ``None`` where the metadata could not be read.
        error: why it could not be read.
    """

    distribution: str
    version: str
    location: str
    name: str
    value: str
    point: importlib_metadata.EntryPoint | None = None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    """Metadata of a plugin that another copy of the same distribution hides."""

    distribution: str
    version: str
    location: str


def discover() -> tuple[list[Found], list[Copy]]:
    """Return the entry points of group ``vcr`` sorted by distribution and name, and hidden copies.

    ``importlib_metadata.entry_points`` parses the files of every distribution in one go, so one
    malformed file of an unrelated package would hide all plugins. Here only files that mention the
    group are parsed, each on its own. Which copy of a distribution counts is still decided by
    ``importlib_metadata``: the first one on the path with valid metadata.
    """
    groups: dict[str, list[_Described]] = {}
    for dist in importlib_metadata.distributions():
        if _mentions_group(dist):
            described = _describe(dist)
            groups.setdefault(described.name, []).append(described)
    found: list[Found] = []
    copies: list[Copy] = []
    for name, candidates in sorted(groups.items()):
        winner = _winner(name, candidates)
        found.extend(_points(winner))
        seen = {(winner.version, winner.location)}
        for other in candidates:
            place = (other.version, other.location)
            if place not in seen:
                seen.add(place)
                copies.append(Copy(name, *place))
    return found, copies


@dataclass(frozen=True, slots=True)
class _Described:
    """A distribution with the fields that are needed, because each look-up parses its metadata."""

    dist: _Distribution
    name: str
    version: str
    location: str
    path: str


def _describe(dist: _Distribution) -> _Described:
    path = str(getattr(dist, "_path", ""))
    name = version = ""
    # A half-removed distribution has no METADATA; what that raises differs between releases.
    try:
        metadata = dist.metadata
        name, version = metadata["Name"] or "", metadata["Version"] or ""
    except (OSError, UnicodeDecodeError, KeyError, TypeError):
        pass
    return _Described(
        dist=dist,
        name=normal_distribution(name or Path(path).stem.partition("-")[0] or "unknown"),
        version=version or "unknown",
        location=str(dist.locate_file("")),
        path=path,
    )


def _winner(name: str, candidates: list[_Described]) -> _Described:
    try:
        dist: _Distribution = importlib_metadata.distribution(name)
    except ModuleNotFoundError:  # metadata so broken that it cannot be found by name
        return candidates[0]
    path = str(getattr(dist, "_path", ""))
    return next((known for known in candidates if known.path == path), None) or _describe(dist)


def _points(source: _Described) -> Iterator[Found]:
    origin = (source.name, source.version, source.location)
    try:
        points = sorted(
            source.dist.entry_points.select(group=GROUP),
            key=lambda point: (point.name, point.value),
        )
    except Exception as error:  # noqa: BLE001 - plugin loader: someone else's metadata
        yield Found(*origin, name="", value="entry_points.txt", error=error)
        return
    seen: set[tuple[str, str]] = set()
    for point in points:
        # An editable install may leave the same entry point in two metadata folders.
        if (point.name, point.value) not in seen:
            seen.add((point.name, point.value))
            yield Found(*origin, name=point.name, value=point.value, point=point)


def _mentions_group(dist: _Distribution) -> bool:
    try:
        text = dist.read_text("entry_points.txt")
    except (OSError, UnicodeDecodeError):
        return False
    return text is not None and f"[{GROUP}]" in text
