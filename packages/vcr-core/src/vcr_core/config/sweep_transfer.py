"""The runs that a sweep gets for a transfer matrix: every attack, shown to every other model."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vcr_core.errors import ConfigError
from vcr_core.source_fit import transfers

if TYPE_CHECKING:
    from vcr_core.config.check import KeyPath
    from vcr_core.config.resolve import Resolved
    from vcr_core.config.sweep import Combination, Point

SOURCE: KeyPath = ("source",)
LABEL = "--transfer"


@dataclass(frozen=True, slots=True)
class Pairing:
    """A point of the sweep that judges another one's attack.

    Attributes:
        point: what the matrix sets, with the other model.
        source: the model that was attacked, as its resolved run has it.
        shown: the reference of that model.
    """

    point: Point
    source: dict[str, Any]
    shown: str


def pairings(points: Sequence[Point], combinations: Sequence[Combination]) -> Iterator[Pairing]:
    """Yield, for every attack on a model of the sweep, a point for every other model in it.

    Attacks that ask no model anything are left out, and so are points that name a source
    themselves.

    Args:
        points: the sweep.
        combinations: what became of each of them.

    Raises:
        ConfigError: if the sweep has a single model.
    """
    models = _models(points)
    if len(models) < 2:
        raise ConfigError(
            f"{LABEL}: the sweep has one model, so there is no other one to show attacks to; "
            "name more in [matrix], as in model = ['tiny-r3d', 'tiny-tsm']"
        )
    for point, combination in zip(points, combinations, strict=True):
        resolved = combination.resolved
        if resolved is None or not _is_source(resolved):
            continue
        source: dict[str, Any] = tomllib.loads(resolved.toml)["model"]
        rest = {key: value for key, value in point.items() if key[0] != "model"}
        for model in models:
            if model != _model_of(point):
                shown = resolved.experiment.model.ref
                yield Pairing({**model, **rest}, source, shown)


def _is_source(resolved: Resolved) -> bool:
    experiment = resolved.experiment
    attack = experiment.attack
    return attack is not None and experiment.source is None and transfers(attack)


def _models(points: Sequence[Point]) -> list[Point]:
    """Return the models of a sweep with their parameters, each once, as parts of points."""
    found = {json.dumps(_plain(part), default=str): part for part in map(_model_of, points)}
    return list(found.values())


def _model_of(point: Point) -> Point:
    return {key: value for key, value in point.items() if key[0] == "model"}


def _plain(part: Point) -> list[Any]:
    return [[list(key), value] for key, value in part.items()]
