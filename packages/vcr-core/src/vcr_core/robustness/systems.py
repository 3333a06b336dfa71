"""Runs sorted into systems: one model behind one defense, on one set of videos."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from vcr_core import outcomes
from vcr_core.errors import UsageError
from vcr_core.manifest import dataset_text, has_own_labels, planned_videos, table
from vcr_core.robustness.places import Family, Place, place_of

if TYPE_CHECKING:
    from vcr_core.summary import RunView

Kind: TypeAlias = tuple[str, tuple[tuple[str, Any], ...]]
Key: TypeAlias = tuple[Kind, int]
"""Type of transformation and level."""

_OWN_LABELS = "labels are the clean predictions: accuracy is agreement, 100 % before the damage"

_PROTOCOL = ("views", "space", "eval_repeats", "tie_frames")


@dataclass(frozen=True, slots=True)
class System:
    """One model behind one chain of defenses.

    Attributes:
        model: reference of the model.
        defense: references of the defenses in their order, ``""`` without one.
        runs: its finished runs by type and level.
        notes: what was left out, in words.
    """

    model: str
    defense: str
    runs: dict[Key, RunView] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What tells it from others."""
        return f"{self.model} + {self.defense}" if self.defense else self.model


@dataclass(frozen=True, slots=True)
class Ground:
    """What numbers of one table have in common: family, setting and videos.

    Attributes:
        family: what kind of transformation.
        setting: settings that all cells share.
        dataset: reference of the dataset, with whose labels count where they are not its own.
        videos: ids of its videos, in the order of the plan.
        systems: who was evaluated, by name.
        places: one place for each type and level that any system has.
        variant: what may tell two grounds of one dataset apart.
        own_labels: whether the labels are what each bare model says of the clean videos.
    """

    family: Family
    setting: tuple[tuple[str, Any], ...]
    dataset: str
    videos: tuple[str, ...]
    systems: dict[str, System] = field(default_factory=dict)
    places: dict[Key, Place] = field(default_factory=dict)
    variant: Mapping[str, Any] = field(default_factory=dict)
    own_labels: bool = False

    @property
    def kinds(self) -> list[Kind]:
        """Types, in alphabetical order."""
        return sorted({kind for kind, _ in self.places}, key=str)

    def levels(self, kinds: Sequence[Kind] | None = None) -> list[int]:
        """Levels that any system has for these types."""
        wanted = None if kinds is None else set(kinds)
        return sorted({level for kind, level in self.places if wanted is None or kind in wanted})

    def label(self, kind: Kind) -> str:
        """Return the name of a type, with its options where the name alone is not enough."""
        name, options = kind
        alike = [other for other in self.kinds if other[0] == name]
        if len(alike) == 1:
            return name
        told = [
            f"{key} = {value}"
            for key, value in options
            if any(dict(other[1]).get(key) != value for other in alike)
        ]
        return f"{name} ({', '.join(told)})" if told else name


def grounds(runs: Sequence[RunView]) -> list[Ground]:
    """Return what can be aggregated, by family, dataset and setting.

    Only finished runs count: a cell of a run that still goes on is a missing cell. Of two runs of
    the same cell the one with more evaluated videos counts, then the later one.
    """
    found: dict[str, Ground] = {}
    for run in sorted(runs, key=lambda r: str(r.manifest.get("started") or "")):
        place = place_of(run.manifest)
        if place is None:
            continue
        ground = found.setdefault(_key(run, place), _ground(run, place))
        system = ground.systems.setdefault(_name(run), System(run.model, _defense(run)))
        if has_own_labels(run.manifest) and _OWN_LABELS not in system.notes:
            system.notes.append(_OWN_LABELS)
        key = (place.kind, place.level)
        if run.manifest.get("status") != "done":
            state = run.manifest.get("status") or "unfinished"
            system.notes.append(f"{ground.label(place.kind)} {place.level}: run is {state}")
            ground.places.setdefault(key, place)
            continue
        ground.places[key] = place
        known = system.runs.get(key)
        if known is not None:
            system.notes.append(f"{place.type} {place.level}: two runs, one was left out")
        if known is None or _evaluated(run) >= _evaluated(known):
            system.runs[key] = run
    return sorted(found.values(), key=_order)


def check_reference(found: Sequence[Ground], reference: str) -> None:
    """Refuse a reference that was not evaluated; ``""`` asks for none.

    Raises:
        UsageError: naming the systems that were.
    """
    known = sorted({name for ground in found for name in ground.systems})
    if reference and reference not in known:
        raise UsageError(
            f"reference {reference!r}: no natural shift, corruption or tampering was run on it; "
            f"there are: {', '.join(known) or 'none'}"
        )


def _ground(run: RunView, place: Place) -> Ground:
    return Ground(
        place.family,
        place.setting,
        dataset_text(run.manifest),
        tuple(planned_videos(run.manifest)) or tuple(r["video"] for r in run.records),
        variant=_basis(run),
        own_labels=has_own_labels(run.manifest),
    )


def _key(run: RunView, place: Place) -> str:
    """Return what cells must share to be put together, as text."""
    manifest = run.manifest
    protocol = table(manifest, "protocol")
    same = {
        "family": place.family,
        "setting": place.setting,
        "dataset": table(manifest, "dataset"),
        "fingerprint": (manifest.get("dataset") or {}).get("fingerprint"),
        "videos": planned_videos(manifest),
        "seed": manifest.get("seed"),
        "evaluation_version": manifest.get("evaluation_version"),
        "labels": has_own_labels(manifest),
        "protocol": {name: protocol.get(name) for name in _PROTOCOL},
    }
    return json.dumps(same, sort_keys=True, default=str)


def _basis(run: RunView) -> dict[str, Any]:
    """Return what tells grounds of one dataset apart, most telling first."""
    protocol = table(run.manifest, "protocol")
    return {
        **table(run.manifest, "dataset"),
        "seed": run.manifest.get("seed"),
        **{name: protocol.get(name) for name in _PROTOCOL},
        "evaluation version": run.manifest.get("evaluation_version"),
        "fingerprint": str((run.manifest.get("dataset") or {}).get("fingerprint"))[:8],
    }


def _order(ground: Ground) -> tuple[Any, ...]:
    from vcr_core.robustness.places import FAMILIES

    return FAMILIES.index(ground.family), ground.dataset, str(ground.setting), ground.videos


def _name(run: RunView) -> str:
    return System(run.model, _defense(run)).name


def _defense(run: RunView) -> str:
    return " → ".join(run.defenses)


def _evaluated(run: RunView) -> int:
    return sum(map(outcomes.is_evaluated, run.records))


def variants(found: Sequence[Ground]) -> dict[int, str]:
    """Return what tells grounds of one dataset apart, by position; ``""`` where nothing must."""
    by_name: dict[str, list[int]] = defaultdict(list)
    for index, ground in enumerate(found):
        by_name[ground.dataset].append(index)
    told = dict.fromkeys(range(len(found)), "")
    for members in by_name.values():
        keys = dict.fromkeys(key for index in members for key in found[index].variant)
        for key in keys:
            values = [found[index].variant.get(key) for index in members]
            # A fingerprint says that videos differ, not in what: only where nothing else does.
            if len({str(value) for value in values}) == 1 or (
                key == "fingerprint" and any(told[index] for index in members)
            ):
                continue
            for index, value in zip(members, values, strict=True):
                word = f"{key} = {value}"
                told[index] = f"{told[index]}, {word}" if told[index] else word
    return told
