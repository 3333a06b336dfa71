"""Whether a component's requirements are installed, from metadata only."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import importlib_metadata

if TYPE_CHECKING:
    from vcr_core.specs import ComponentSpec


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a component can be used here, and in words.

    Attributes:
        ok: whether every requirement is met.
        text: ``"ok"``, or what is missing and what to install.
    """

    ok: bool
    text: str


def availability(spec: ComponentSpec) -> Availability:
    """Check ``spec.requires`` against installed metadata; nothing is imported.

    Returns:
        ``ok``, or for example ``needs vcr-models[mmaction2] (mmcv>=2.0.0,<2.2.0 not installed)``.
    """
    missing = [text for text in (_missing(requirement) for requirement in spec.requires) if text]
    if not missing:
        return Availability(True, "ok")
    what = spec.extra or ", ".join(spec.requires)
    return Availability(False, f"needs {what} ({'; '.join(missing)})")


def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution, or ``None``."""
    try:
        return importlib_metadata.version(distribution) or None
    except ModuleNotFoundError:
        return None
    except (OSError, KeyError):  # metadata of a half-removed distribution
        return None


@cache
def _missing(requirement: str) -> str:
    """Return what is wrong with one requirement, or ``""``."""
    # Many lists need no version at all, and this import is a noticeable part of `vcr list`.
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        parsed = Requirement(requirement)
    except InvalidRequirement:
        return f"{requirement!r} is not a valid requirement"
    if parsed.marker is not None and not parsed.marker.evaluate():
        return ""
    wanted = f"{parsed.name}{parsed.specifier}"
    version = installed_version(parsed.name)
    if version is None:
        return f"{wanted} not installed"
    if not parsed.specifier.contains(version, prereleases=True):
        return f"{wanted} needed, {version} installed"
    return ""


def forget() -> None:
    """Forget what was looked up, for tests that install something."""
    _missing.cache_clear()
