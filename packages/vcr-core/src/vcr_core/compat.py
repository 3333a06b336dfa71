"""Which components can run together, from their specs alone: nothing is imported or loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from vcr_core import plugins
from vcr_core.availability import availability
from vcr_core.components import chosen_weights
from vcr_core.source_fit import label_space, source_misfits
from vcr_core.specs import AttackSpec, DatasetSpec, DefenseSpec, ModelSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vcr_core.config.experiment import Chosen, Experiment

NON_ADAPTIVE = "set protocol.attacker_knows_defense = false to attack the bare model"


def check(experiment: Experiment) -> list[str]:
    """Return every reason why an experiment cannot run here; empty if it can."""
    return [*misfits(experiment), *missing(experiment)]


def missing(experiment: Experiment) -> list[str]:
    """Return what a component needs and this machine has not."""
    found: list[str] = []
    for chosen in _components(experiment):
        weights = None
        if isinstance(chosen.spec, ModelSpec):
            weights = chosen_weights(chosen.spec, chosen.variant)
        state = availability(chosen.spec, weights)
        if not state.ok:
            found.append(f"{chosen.spec.kind} {chosen.ref} is not available: {state.text}")
    return found


def misfits(experiment: Experiment) -> list[str]:
    """Return why these components do not fit together, each with the key to change."""
    found = [*_label_misfits(experiment), *_certificate_misfits(experiment)]
    if experiment.source is not None:
        found += source_misfits(experiment, experiment.source)
    if experiment.attack is not None:
        attack = cast("AttackSpec", experiment.attack.spec)
        found += _threat_misfits(experiment.attack_run, attack)
        found += _model_misfits(experiment.attack_run, attack)
        if experiment.adaptive and attack.access == "white-box":
            found += _gradient_misfits(experiment, attack)
    return found


def notes(experiment: Experiment) -> list[str]:
    """Return what is worth saying before a run and is no mistake."""
    found: list[str] = []
    protocol, threat, attack = experiment.protocol, experiment.threat, experiment.attack
    is_random = any(cast("DefenseSpec", d.spec).stochastic for d in experiment.defenses)
    if protocol.eot > 1 and attack is not None and not experiment.adaptive:
        found.append(f"protocol.eot = {protocol.eot} has no effect: the attack knows no defense")
    elif protocol.eot > 1 and attack is not None and not is_random:
        why = "no random defense is in the attacker's view"
        found.append(f"protocol.eot = {protocol.eot} repeats the same gradient: {why}")
    if attack is None:
        return found
    if experiment.source is not None and protocol.stop == "first_success":
        found.append(
            f"protocol.stop = 'first_success' ends the attack as soon as {experiment.source.ref} "
            "is wrong, which is where least of it carries over; 'budget' goes on"
        )
    if threat.norm != "none" and threat.eps == 0 and not threat.per_frame_eps:
        found.append(f"threat.eps = 0: {attack.ref} cannot change anything")
    if threat.norm == "linf" and 0 < threat.eps < 0.5 / 255 and threat.quantize:
        found.append("threat.eps is less than half a level of 8 bits: rounding undoes the attack")
    return found


def void_certificate(experiment: Experiment, position: int) -> str | None:
    """Return why a certificate of the defense at this place of the chain would mean nothing."""
    name = experiment.defenses[position].ref
    if position:
        return (
            f"defense.{position}: {name} cannot certify what stands behind "
            f"{experiment.defenses[position - 1].ref}: a certificate is about the video itself; "
            f"put {name} first, or set certify_n = 0"
        )
    if not experiment.protocol.tie_frames:
        return (
            f"protocol.tie_frames: found false, and {name} is to certify: clips that share frames "
            "would get separate noise, which certifies no video; leave the key out, or set "
            "certify_n = 0"
        )
    return None


def _certificate_misfits(experiment: Experiment) -> Iterator[str]:
    for position, chosen in enumerate(experiment.defenses):
        asked = cast("DefenseSpec", chosen.spec).certifies and chosen.params.get("certify_n")
        problem = void_certificate(experiment, position) if asked else None
        if problem:
            yield problem


def _components(experiment: Experiment) -> Iterator[Chosen]:
    yield experiment.dataset
    yield experiment.model
    if experiment.source is not None:
        yield experiment.source
    if experiment.attack is not None:
        yield experiment.attack
    yield from experiment.defenses
    yield from experiment.metrics


def _label_misfits(experiment: Experiment) -> Iterator[str]:
    yield from _labels_of("model", experiment.model, experiment)
    if experiment.source is not None:
        yield from _labels_of("source", experiment.source, experiment)


def _labels_of(key: str, model: Chosen, experiment: Experiment) -> Iterator[str]:
    dataset = experiment.dataset
    wanted = cast("DatasetSpec", dataset.spec).label_space
    given = label_space(model)
    if experiment.own_labels or not wanted or not given or wanted == given:
        return  # an unknown label space is compared by names once the data is there
    fitting = sorted(
        entry.name
        for entry in plugins.registry().entries("model")
        if cast("ModelSpec", entry.spec).label_space == wanted
    )
    others = f"; models for {wanted}: {', '.join(fitting[:6])}" if fitting else ""
    yield (
        f"{key}.name: {model.ref} predicts the classes of {given!r}, and dataset "
        f"{dataset.ref} is labelled with {wanted!r}{others}"
    )


def _threat_misfits(experiment: Experiment, attack: AttackSpec) -> Iterator[str]:
    threat, ref = experiment.threat, attack.name
    if threat.norm not in attack.norms:
        norms = " or ".join(repr(norm) for norm in sorted(attack.norms))
        why = "has no norm that it is bound by" if attack.norms == {"none"} else "does not know it"
        yield f"threat.norm: found {threat.norm!r}, and {ref} {why}; allowed: {norms}"
    if threat.targeted and not attack.targeted:
        yield f"threat.targeted: found true, and {ref} has no targeted mode; allowed: false"
    if not threat.targeted and not attack.untargeted:
        yield f"threat.targeted: found false, and {ref} has no untargeted mode; allowed: true"
    classes = cast("ModelSpec", experiment.model.spec).num_classes
    if threat.targeted and isinstance(threat.target, int) and 0 < classes <= threat.target:
        yield (
            f"threat.target: found {threat.target}; allowed: 0 to {classes - 1}, "
            f"the classes of {experiment.model.ref}"
        )
    if attack.access == "none" and attack.stage != "frames":
        for key in ("frames", "per_frame_eps", "region"):
            if getattr(threat, key) is not None:
                yield (
                    f"threat.{key}: set, and {ref} changes the {attack.stage} before frames are "
                    "sampled; leave the key out"
                )


def _model_misfits(experiment: Experiment, attack: AttackSpec) -> Iterator[str]:
    model = experiment.model  # the source, where there is one
    if attack.access == "white-box" and not cast("ModelSpec", model.spec).differentiable:
        other = sorted(
            entry.name
            for entry in plugins.registry().entries("attack")
            if cast("AttackSpec", entry.spec).access in ("score", "decision")
        )
        options = f" (such as {', '.join(other[:3])})" if other else ""
        yield (
            f"attack.name: {attack.name} needs gradients, and model {model.ref} has none; "
            f"use an attack with access 'score' or 'decision'{options} or another model"
        )


def _gradient_misfits(experiment: Experiment, attack: AttackSpec) -> Iterator[str]:
    asked = experiment.protocol.gradient
    if asked == "none":
        yield (
            f"protocol.gradient: found 'none', and {attack.name} follows gradients; allowed: "
            f"'auto', 'exact' or 'surrogate'; or {NON_ADAPTIVE}"
        )
        return
    for chosen in experiment.defenses:
        defense = cast("DefenseSpec", chosen.spec)
        if defense.gradient == "none":
            yield (
                f"defense {chosen.ref} gives no gradient, and {attack.name} needs one through it; "
                f"{NON_ADAPTIVE}, or use an attack with access 'score' or 'decision'"
            )
        elif asked == "exact" and defense.gradient == "surrogate":
            yield (
                f"protocol.gradient: found 'exact', and defense {chosen.ref} has a surrogate "
                "gradient only; allowed: 'auto' or 'surrogate'"
            )
        elif (
            asked == "surrogate"
            and defense.defense_kind in ("smooth", "detector", "checkpoint")
            and (defense.gradient == "exact")
        ):
            yield (
                f"protocol.gradient: found 'surrogate', and defense {chosen.ref} has an exact "
                "gradient and no surrogate; allowed: 'auto' or 'exact'"
            )
