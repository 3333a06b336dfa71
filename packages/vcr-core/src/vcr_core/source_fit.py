"""Which experiments can judge an attack that was computed on another model, from specs alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from vcr_core.components import chosen_weights, clip_of
from vcr_core.specs import AttackSpec, ModelSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vcr_core.config.experiment import Chosen, Experiment


def transfers(attack: Chosen) -> bool:
    """Return whether it makes a difference on which model an attack is computed."""
    spec = cast("AttackSpec", attack.spec)
    return spec.stage == "frames" and spec.access != "none"


def label_space(model: Chosen) -> str:
    """Return the id of the classes that a model predicts, ``""`` where its spec has none."""
    spec = cast("ModelSpec", model.spec)
    weights = chosen_weights(spec, model.variant)
    return (weights.label_space if weights else "") or spec.label_space


def source_misfits(experiment: Experiment, source: Chosen) -> Iterator[str]:
    """Yield why an attack on ``source`` cannot be judged on the model, with the key to change.

    Args:
        experiment: what is asked for.
        source: its source model.
    """
    attack, protocol = experiment.attack, experiment.protocol
    if attack is None:
        yield (
            f"source.name: found {source.ref!r}, and there is no attack to compute on it; name an "
            "attack, or leave [source] out"
        )
        return
    if not transfers(attack):
        yield (
            f"source.name: found {source.ref!r}, and {attack.ref} asks no model anything: it does "
            "the same whatever the source; leave [source] out"
        )
        return
    if experiment.adaptive:
        yield (
            f"protocol.attacker_knows_defense: found true, and the attack is computed on "
            f"{source.ref}, which has no defense; set protocol.attacker_knows_defense = false"
        )
    if protocol.space != "source":
        yield (
            f"protocol.space: found {protocol.space!r}, the size that {source.ref} sees, and the "
            f"videos are shown to {experiment.model.ref} as well; allowed with [source]: 'source'"
        )
    if not protocol.tie_frames:
        yield (
            "protocol.tie_frames: found false: clips that do not share frames are no video that "
            "could be shown to another model; allowed with [source]: true"
        )
    yield from _spec_misfits(experiment, source)


def _spec_misfits(experiment: Experiment, source: Chosen) -> Iterator[str]:
    model = experiment.model
    sides = [clip_of(chosen).reduce_to for chosen in (source, model)]
    if sides[0] != sides[1]:
        yield (
            f"source.name: {source.ref} and {model.ref} look at frames that are reduced to "
            f"different sizes ({sides[0] or 'none'} and {sides[1] or 'none'} pixels)"
        )
    ours, theirs = label_space(model), label_space(source)
    if experiment.threat.targeted and ours and theirs and ours != theirs:
        yield (
            f"threat.targeted: found true, and a target among the classes {theirs!r} of "
            f"{source.ref} is none of {model.ref}, which predicts {ours!r}; allowed: false"
        )
