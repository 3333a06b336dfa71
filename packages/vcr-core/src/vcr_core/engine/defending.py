"""The defense chain of an experiment: as it is judged, as an attack sees it, and on which model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from vcr_core.adaptive import DefenseLink
from vcr_core.compat import void_certificate
from vcr_core.components import build
from vcr_core.config.command_text import LOCAL
from vcr_core.engine.models import guarded_model
from vcr_core.errors import ConfigError, IncompatibleComponents
from vcr_core.protocols import Certifier, Checkpoint
from vcr_core.weights.places import folders_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import torch

    from vcr_core.config.experiment import Chosen, Experiment
    from vcr_core.metering import GuardedModel
    from vcr_core.protocols import Defense, VideoClassifier
    from vcr_core.specs import DefenseSpec


def build_links(
    experiment: Experiment, given: Sequence[Defense] | None
) -> tuple[tuple[DefenseLink, ...], tuple[DefenseLink, ...]]:
    """Return the chain that is judged and the chain that an adaptive attack sees.

    The second one differs where a defense has ``attack_params``.

    Args:
        experiment: what names the defenses.
        given: objects that stand for them.

    Raises:
        ConfigError: if a defense is to certify and its place in the chain makes that void.
    """
    judged, seen = [], []
    for position, chosen in enumerate(experiment.defenses):
        link = _link(chosen, given[position] if given is not None else build(chosen))
        if isinstance(link.defense, Certifier) and link.defense.certifies:
            _refuse_void_certificate(experiment, position)
        judged.append(link)
        if chosen.attack_params and experiment.adaptive and chosen.distribution != LOCAL:
            link = _link(chosen, build(replace(chosen, params=chosen.attack_params)))
        seen.append(link)
    return tuple(judged), tuple(seen)


def defended_model(
    experiment: Experiment, links: Sequence[DefenseLink], model: GuardedModel, device: torch.device
) -> GuardedModel:
    """Return the model behind the defenses: ``model``, or the one a checkpoint defense names.

    Raises:
        ConfigError: if two defenses replace the model, or a model from Python is to be replaced.
        IncompatibleComponents: if the replacement has other classes or samples other frames.
    """
    swaps = [link for link in links if isinstance(link.defense, Checkpoint)]
    if not swaps:
        return model
    if len(swaps) > 1:
        names = " and ".join(link.name for link in swaps)
        raise ConfigError(f"defense: {names} each replace the model's weights; use one of them")
    who = f"defense {swaps[0].name!r}"
    if experiment.model.distribution == LOCAL:
        raise ConfigError(
            f"{who} replaces a model by name, and this one was given from Python; "
            "evaluate the defended model as a model of its own"
        )
    name = cast("Checkpoint", swaps[0].defense).checkpoint(experiment.model.ref)
    other = replacement(name, who, folders_of(experiment.paths))
    for what, ours, theirs in (
        ("classes", model.labels.names, other.labels.names),
        ("a clip", model.clip, other.clip),
    ):
        if ours != theirs:
            raise IncompatibleComponents(
                f"{who}: model {name!r} has {what} other than {experiment.model.ref!r}; "
                "name the same architecture with other weights"
            )
    return guarded_model(other, experiment, device)


def replacement(name: str, who: str, folders: Sequence[Path] = ()) -> VideoClassifier:
    """Build a model by reference.

    Raises:
        ConfigError: naming the defense that asked for it.
    """
    from vcr_core.config.objects import choose_component

    try:
        model: VideoClassifier = build(choose_component("model", name, {}), folders)
    except ConfigError as error:
        raise ConfigError(f"{who} asks for model {name!r}: {error}") from error
    return model


def _refuse_void_certificate(experiment: Experiment, position: int) -> None:
    problem = void_certificate(experiment, position)
    if problem:
        raise ConfigError(problem)


def _link(chosen: Chosen, defense: Any) -> DefenseLink:
    spec = cast("DefenseSpec", chosen.spec)
    return DefenseLink(
        name=chosen.ref,
        defense=defense,
        gradient=getattr(defense, "gradient", spec.gradient),
        stochastic=bool(getattr(defense, "stochastic", spec.stochastic)),
    )
