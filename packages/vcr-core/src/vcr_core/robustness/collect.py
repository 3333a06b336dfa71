"""All aggregates of a set of runs, as JSON-ready data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vcr_core.definitions import OWN_LABELS
from vcr_core.robustness.corruptions import Grid, describe_corruptions, mean_retention
from vcr_core.robustness.natural import Neighbours, describe_natural
from vcr_core.robustness.proxies import correlation
from vcr_core.robustness.replicates import Resampler, missing
from vcr_core.robustness.suites import larger, parts
from vcr_core.robustness.systems import check_reference, grounds, variants
from vcr_core.robustness.tampering import describe_tampering

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vcr_core.robustness.suites import Part
    from vcr_core.robustness.systems import Ground, System
    from vcr_core.summary import RunView


@dataclass(frozen=True, slots=True)
class Section:
    """One family on one set of videos, and one list of types where there are lists.

    Attributes:
        family: ``natural``, ``corruption`` or ``tampering``.
        dataset: reference of the dataset.
        variant: what tells its videos from others of that dataset here, or ``""``.
        setting: what all cells have in common.
        videos: how many videos there are.
        suite: name of the list, ``""`` for none.
        version: its version.
        extent: what of the list is there, ``""`` where all of it is.
        within: another list here that has all of its types and more, or ``""``.
        levels: steps or severities, ``()`` for tampering.
        systems: the numbers of every system, by its name.
        names: model and defense of every system, by its name.
        notes: what was left out, in words.
    """

    family: str
    dataset: str
    variant: str
    setting: Mapping[str, Any]
    videos: int
    suite: str
    version: str
    extent: str
    within: str
    levels: tuple[int, ...]
    systems: Mapping[str, Mapping[str, Any]]
    names: Mapping[str, tuple[str, str]]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Robustness:
    """What :func:`collect` found.

    Attributes:
        sections: in the order natural, corruption, tampering.
        proxies: correlations over models by dataset; ``accuracy`` and one a corruption.
        reference: the model that errors are divided by, ``""`` without one.
    """

    sections: tuple[Section, ...]
    proxies: Mapping[str, Mapping[str, Any]]
    reference: str

    def plain(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        from dataclasses import asdict

        return {
            "reference": self.reference or None,
            "sections": [_plain(asdict(section)) for section in self.sections],
            "proxies": {name: dict(found) for name, found in self.proxies.items()},
        }


def collect(runs: Sequence[RunView], reference: str = "", *, seed: int = 0) -> Robustness:
    """Return every aggregate over runs that nobody attacked.

    Args:
        runs: any runs; others than natural shifts, corruptions and tampering are left out.
        reference: model that corruption errors and flip rates are divided by.
        seed: of the bootstrap.

    Raises:
        UsageError: if no such run is of the reference.
    """
    found = grounds(runs)
    check_reference(found, reference)
    told = variants(found)
    sections: list[Section] = []
    natural: dict[str, dict[str, tuple[float | None, float | None]]] = {}
    distortions: dict[str, dict[str, dict[str, float | None]]] = {}
    resamplers: dict[int, Resampler] = {}
    for index, ground in enumerate(found):
        count = len(ground.videos)
        resampler = resamplers.setdefault(count, Resampler(count, seed=seed))
        base = ground.systems.get(reference)
        if ground.family == "natural":
            section = _natural(ground, base, resampler, told[index])
            _note_natural(section, natural.setdefault(ground.dataset, {}))
            sections.append(section)
            continue
        lists = parts(ground)
        for part in lists:
            within = larger(part, lists)
            if ground.family == "tampering":
                sections.append(_tampering(ground, part, resampler, told[index], within))
            else:
                grids = {
                    name: Grid(ground, system, part.kinds, resampler)
                    for name, system in sorted(ground.systems.items())
                }
                sections.append(_corruption(ground, part, grids, reference, told[index], within))
                _note_types(grids, distortions.setdefault(ground.dataset, {}))
    return Robustness(tuple(sections), _proxies(natural, distortions), reference)


def _natural(ground: Ground, base: System | None, resampler: Resampler, variant: str) -> Section:
    made = {
        name: Neighbours(ground, system, resampler)
        for name, system in sorted(ground.systems.items())
    }
    reference = None if base is None else made[base.name]
    systems = {name: describe_natural(one, reference) for name, one in made.items()}
    levels = tuple(level for level in ground.levels() if level != 0)
    return _section(ground, None, systems, levels, variant)


def _corruption(
    ground: Ground,
    part: Part,
    grids: Mapping[str, Grid],
    reference: str,
    variant: str,
    within: str,
) -> Section:
    base = grids.get(reference)
    systems = {name: describe_corruptions(grid, base) for name, grid in grids.items()}
    return _section(ground, part, systems, part.levels, variant, within)


def _tampering(
    ground: Ground, part: Part, resampler: Resampler, variant: str, within: str
) -> Section:
    systems = {
        name: describe_tampering(ground, system, part.kinds, resampler)
        for name, system in sorted(ground.systems.items())
    }
    return _section(ground, part, systems, (), variant, within)


def _section(
    ground: Ground,
    part: Part | None,
    systems: Mapping[str, Mapping[str, Any]],
    levels: tuple[int, ...],
    variant: str,
    within: str = "",
) -> Section:
    if ground.own_labels:
        systems = {
            name: numbers if ground.systems[name].defense else _without_accuracy(numbers)
            for name, numbers in systems.items()
        }
    return Section(
        family=ground.family,
        dataset=ground.dataset,
        variant=variant,
        setting=dict(ground.setting),
        videos=len(ground.videos),
        suite=part.suite.name if part else "",
        version=part.suite.version if part else "",
        extent=part.extent if part else "",
        within=within,
        levels=levels,
        systems=systems,
        names={name: (one.model, one.defense) for name, one in ground.systems.items()},
        notes=tuple(
            f"{name}: {note}"
            for name, one in sorted(ground.systems.items())
            for note in dict.fromkeys(one.notes)
        ),
    )


def _without_accuracy(numbers: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return numbers of a bare model without the accuracy that it has by construction."""
    blank = {
        key: missing(OWN_LABELS, numbers["overall"][key]["n"])
        for key in ("clean", "anchor_accuracy")
        if key in numbers["overall"]
    }
    return {**numbers, "overall": {**numbers["overall"], **blank}}


def _note_natural(section: Section, into: dict[str, tuple[float | None, float | None]]) -> None:
    for name, numbers in section.systems.items():
        if not section.names[name][1]:
            overall = numbers["overall"]
            into.setdefault(
                name, (overall["anchor_accuracy"]["value"], overall["retention"]["value"])
            )


def _note_types(grids: Mapping[str, Grid], into: dict[str, dict[str, float | None]]) -> None:
    for name, grid in grids.items():
        for kind in grid.kinds:
            into.setdefault(grid.ground.label(kind), {}).setdefault(
                name, mean_retention(grid, kind)
            )


def _proxies(
    natural: Mapping[str, Mapping[str, tuple[float | None, float | None]]],
    distortions: Mapping[str, Mapping[str, Mapping[str, float | None]]],
) -> dict[str, dict[str, Any]]:
    """Return correlations with natural robustness over undefended models, by dataset."""
    return {
        dataset: {
            "accuracy": correlation(list(models.values())),
            "types": {
                kind: correlation([(found.get(name), nr) for name, (_, nr) in models.items()])
                for kind, found in sorted(distortions.get(dataset, {}).items())
            },
        }
        for dataset, models in natural.items()
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value
