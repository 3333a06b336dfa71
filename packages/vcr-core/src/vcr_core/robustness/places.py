"""Which cell a run is in the grid of its family: shift by steps, type by severity, or operator."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from vcr_core.manifest import component_ref

Family: TypeAlias = Literal["natural", "corruption", "tampering"]
FAMILIES: tuple[Family, ...] = ("natural", "corruption", "tampering")

SEVERITIES = 5
NO_GROUP = "other"

_WHERE = ("location", "duration_s", "duration_frames")
_TAMPER_SUITES = {"mvt5": 5, "mvt8": 8}


@dataclass(frozen=True, slots=True, order=True)
class Suite:
    """A published list of types.

    Attributes:
        name: its key, ``""`` for types that belong to none.
        version: version of its strengths.
        types: how many types are all of it.
        severities: how many severities each has.
    """

    name: str
    version: str = ""
    types: int = 0
    severities: int = SEVERITIES


NO_SUITE = Suite("", "", 0, SEVERITIES)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run stands.

    Attributes:
        family: what kind of transformation.
        type: name of the transformation without its distribution.
        options: parameters that make it another type of the same name, as JSON-ready pairs.
        level: steps of a shift, severity of a corruption, 0 for tampering.
        group: group of the type, as ``noise``.
        suites: lists that the type belongs to.
        setting: what all cells of one table have in common, as location and duration.
    """

    family: Family
    type: str
    options: tuple[tuple[str, Any], ...] = ()
    level: int = 0
    group: str = NO_GROUP
    suites: tuple[Suite, ...] = ()
    setting: tuple[tuple[str, Any], ...] = ()

    @property
    def kind(self) -> tuple[str, tuple[tuple[str, Any], ...]]:
        """What is one type: name and options."""
        return self.type, self.options


def place_of(manifest: Mapping[str, Any]) -> Place | None:
    """Return where a run stands; ``None`` if an adversary or nobody touched its videos."""
    part = next(
        (p for p in manifest.get("components") or () if p.get("role") == "attack"),
        None,
    )
    if part is None or part.get("access") != "none":
        return None
    name = component_ref(manifest, "attack")
    params = _params(part, manifest)
    tags = _tags(part, name)
    if "natural" in tags:
        return _natural(name, params)
    if "tampering" in tags:
        return _tampering(name, params, tags)
    if "corruption" in tags or "corruption" in part or "severity" in params:
        return _corruption(name, params, tags, part.get("corruption"))
    return None


def _natural(name: str, params: Mapping[str, Any]) -> Place | None:
    steps = params.get("steps")
    if not isinstance(steps, int):
        return None
    apart = {"steps"} if params.get("boundary") == "center-crop" else {"steps", "reach"}
    return Place("natural", name, level=steps, group="natural", setting=_pairs(params, apart))


def _tampering(name: str, params: Mapping[str, Any], tags: frozenset[str]) -> Place:
    # The five of the paper are the first five of the eight it announces.
    names = ("mvt5", "mvt8") if "mvt5" in tags else ("mvt8",) if "mvt8" in tags else ()
    setting = {key: params[key] for key in _WHERE if params.get(key) is not None}
    if "duration_frames" in setting:
        setting.pop("duration_s", None)
    return Place(
        "tampering",
        name,
        _pairs(params, _WHERE),
        group="tampering",
        suites=tuple(Suite(key, "1", _TAMPER_SUITES[key], 1) for key in names),
        setting=_pairs(setting, ()),
    )


def _corruption(
    name: str, params: Mapping[str, Any], tags: frozenset[str], facts: Any
) -> Place | None:
    severity = params.get("severity")
    if not isinstance(severity, int):
        return None
    facts = facts if isinstance(facts, Mapping) else {}
    return Place(
        "corruption",
        str(facts.get("type") or name),
        _pairs(params, {"severity"}),
        severity,
        str(facts.get("group") or NO_GROUP),
        tuple(
            Suite(
                str(suite["name"]),
                str(suite.get("version") or ""),
                int(suite.get("types") or 0),
                int(suite.get("severities") or SEVERITIES),
            )
            for suite in facts.get("suites") or ()
        ),
    )


def _params(part: Mapping[str, Any], manifest: Mapping[str, Any]) -> dict[str, Any]:
    chosen = (manifest.get("experiment") or {}).get("attack") or {}
    given = {key: value for key, value in chosen.items() if key not in ("name", "variant")}
    return {**given, **(part.get("params") or {})}


def _tags(part: Mapping[str, Any], name: str) -> frozenset[str]:
    """Return the component's tags; runs made before manifests had them ask the registry."""
    if "tags" in part:
        return frozenset(part["tags"] or ())
    from vcr_core.errors import VcrError
    from vcr_core.plugins import registry

    try:
        entry, _ = registry().find("attack", str(part.get("ref") or name))
    except VcrError:
        return frozenset()
    return entry.spec.tags


def _pairs(params: Mapping[str, Any], apart: Collection[str]) -> tuple[tuple[str, Any], ...]:
    return tuple(
        (key, tuple(value) if isinstance(value, list) else value)
        for key, value in sorted(params.items())
        if key not in apart and value is not None
    )
