"""Whether a component's requirements are installed, from metadata only."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import importlib_metadata

from vcr_core.specs import MetricSpec, ModelSpec
from vcr_core.weights.places import find, is_bundled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from vcr_core.specs import ComponentSpec, WeightSpec


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a component can be used here, and in words.

    Attributes:
        ok: whether every requirement is met.
        text: ``"ok"``, or what is missing and what to install.
    """

    ok: bool
    text: str


def availability(spec: ComponentSpec, weights: WeightSpec | None = None) -> Availability:
    """Check requirements against installed metadata; nothing is imported.

    Args:
        spec: of the component.
        weights: the chosen weights of a model, which may require more.

    Returns:
        ``ok``, or for example ``needs vcr-models[mmaction2] (mmcv>=2.0.0,<2.2.0 not installed)``.
    """
    wanted = (*spec.requires, *(weights.requires if weights else ()))
    missing = [text for text in (_missing(requirement) for requirement in wanted) if text]
    if not missing:
        return Availability(True, "ok")
    what = (weights.extra if weights else None) or spec.extra or ", ".join(wanted)
    return Availability(False, f"needs {what} ({'; '.join(missing)})")


def without_file(weights: WeightSpec, folders: Sequence[Path] = ()) -> bool:
    """Return whether weights have a file that is not on this machine."""
    here = is_bundled(weights) or bool(weights.file) or not weights.url
    return not here and find(weights, folders) is None


def readiness(spec: ComponentSpec, weights: Sequence[WeightSpec] | None = None) -> Availability:
    """Return :func:`availability`, and whether any weights of a model or metric are here.

    Args:
        spec: of the component.
        weights: the ones in question; all of the component where nothing is said.
    """
    if weights is None:
        weights = spec.weights if isinstance(spec, ModelSpec | MetricSpec) else ()
    if not weights:
        return availability(spec)
    states = [availability(spec, one) for one in weights]
    usable = [one for one, state in zip(weights, states, strict=True) if state.ok]
    if not usable:
        return states[0]
    if all(without_file(one) for one in usable):
        return Availability(False, "weights not downloaded")
    return Availability(True, "ok")


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
