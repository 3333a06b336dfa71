"""In which order the runs of a sweep are done, and which of them share an attack; no torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vcr_core.config.identity import attack_identity

if TYPE_CHECKING:
    from vcr_core.config.experiment import Experiment
    from vcr_core.config.resolve import Resolved
    from vcr_core.config.sweep import Combination


@dataclass(frozen=True, slots=True)
class Step:
    """One run of a sweep.

    Attributes:
        index: position of its combination in the sweep.
        resolved: the run.
        attack_of: position of the combination whose attack it takes over, if it does.
        shares: whether a later run takes over something that this one makes.
    """

    index: int
    resolved: Resolved
    attack_of: int | None = None
    shares: bool = False


def sweep_steps(combinations: Sequence[Combination]) -> list[Step]:
    """Return the possible runs of a sweep in the order in which they are done.

    Model by model: clean runs first, since what fails early fails cheaply; then every attack that
    knows no defense, followed by the runs that judge its videos on other models and behind
    defenses; then the adaptive ones.
    """
    possible = [(i, c.resolved) for i, c in enumerate(combinations) if c.resolved is not None]
    keys = {index: _attack_key(resolved.experiment) for index, resolved in possible}
    first: dict[str, int] = {}
    for index, key in keys.items():
        first.setdefault(key, index)

    def rank(item: tuple[int, Resolved]) -> tuple[str, int, int, bool, bool, int]:
        index, resolved = item
        experiment = resolved.experiment
        stage = 0 if experiment.attack is None else 2 if experiment.adaptive else 1
        family = first[keys[index]] if stage == 1 else 0
        asked = experiment.attack_run.model.qualified
        other, defended = experiment.source is not None, bool(experiment.defenses)
        return asked, stage, family, other, defended, index

    steps: list[Step] = []
    makers: dict[str, int] = {}
    models = [
        chosen.qualified
        for _, resolved in possible
        for chosen in (resolved.experiment.model, resolved.experiment.source)
        if chosen is not None
    ]
    for index, resolved in sorted(possible, key=rank):
        experiment = resolved.experiment
        key, off = keys[index], experiment.runtime.reuse is False
        attack_of = None if off or not key else makers.get(key)
        if key and not off and attack_of is None:
            makers[key] = index
        partners = sum(other == key for other in keys.values())
        # The bare model's clean predictions are of use to every other run of the model.
        helps = experiment.attack is None and models.count(experiment.model.qualified) > 1
        shares = not off and (helps or (bool(key) and partners > 1))
        steps.append(Step(index, resolved, attack_of, shares))
    return steps


def _attack_key(experiment: Experiment) -> str:
    """Return the same text for runs whose attack is the same, ``""`` for one that nobody shares."""
    identity = attack_identity(experiment)
    if identity is None:
        return ""
    runtime = experiment.runtime
    return json.dumps([identity, runtime.batch_videos, runtime.chunk_clips], sort_keys=True)
