"""What the core checks of an attack's answer before it believes anything."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from vcr_core.errors import ContractViolation, ModelChanged
from vcr_core.metering import modules_of
from vcr_core.threat import Storage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from vcr_core.metering import GuardedModel
    from vcr_core.threat import ThreatModel


@dataclass(slots=True)
class Verified:
    """An attack's answer, made fit to be judged.

    Attributes:
        video: ``[B, T, C, H, W]`` inside the threat model, rounded if it says so.
        violation: ``[B]`` how far outside the answer was.
        outside: ``[B]`` bool, whether that is more than rounding errors explain.
    """

    video: Tensor
    violation: Tensor
    outside: Tensor


def check_answer(name: str, answer: Any, given: Tensor) -> Tensor:
    """Return the answer if it has the right kind, shape, dtype, device and finite values.

    Raises:
        ContractViolation: naming the attack and what is wrong.
    """
    who = f"attack {name!r}"
    if not isinstance(answer, torch.Tensor):
        raise ContractViolation(
            f"{who} returned {type(answer).__name__}, not a tensor; success is judged by the core"
        )
    if answer.shape != given.shape:
        raise ContractViolation(
            f"{who} returned shape {list(answer.shape)} for videos of shape {list(given.shape)}"
        )
    if answer.dtype != given.dtype:
        raise ContractViolation(f"{who} returned {answer.dtype}, expected {given.dtype}")
    if answer.device != given.device:
        raise ContractViolation(f"{who} returned a tensor on {answer.device}, not {given.device}")
    detached: Tensor = answer.detach()
    if not bool(torch.isfinite(detached).all()):
        raise ContractViolation(f"{who} returned values that are not finite (NaN or infinity)")
    return detached


def fit(
    answer: Tensor, clean: Tensor, threat: ThreatModel, storage: Storage | None = None
) -> Verified:
    """Project the answer into the threat model and round it as it would be stored."""
    violation = threat.violation(answer, clean)
    outside = violation > threat.slack(clean)
    # Rounding to 8 bits keeps to the ball by itself; only a real violation needs projecting then.
    needed = outside if threat.quantize else violation > 0
    video = threat.project(answer, clean) if bool(needed.any()) else answer
    return Verified((storage or Storage(threat, clean))(video), violation, outside)


@contextmanager
def untouched(name: str, models: Sequence[GuardedModel], given: Tensor) -> Iterator[Tensor]:
    """Hand out a copy of ``given`` and check that attack left it, and the models, as they were.

    Raises:
        ModelChanged: if parameters or buffers changed.
        ContractViolation: if the videos, gradient flags or modes changed (the latter are put back),
            or if the model was asked behind the victim's back.
    """
    handed = given.clone()
    modes = [mode for model in models for mode in _modes(model)]
    before = [_tensors(model) for model in models]
    try:
        with ExitStack() as watched:
            for model in models:
                watched.enter_context(model.watch())
            yield handed
    finally:
        changed_modes = _restore(modes)
    who = f"attack {name!r}"
    if [_tensors(model) for model in models] != before:
        raise ModelChanged(f"{who} changed the model: its parameters or buffers")
    if changed_modes:
        raise ContractViolation(f"{who} changed the model: its gradient flags or training mode")
    unmetered = sum(model.unmetered for model in models)
    if unmetered:
        raise ContractViolation(
            f"{who} made {unmetered} forward pass(es) outside of the victim; "
            "hidden queries are not allowed"
        )
    if not torch.equal(handed, given):
        raise ContractViolation(f"{who} changed the videos it was given in place")


def _tensors(model: GuardedModel) -> list[tuple[int, int]]:
    return [
        (tensor.data_ptr(), tensor._version)
        for module in modules_of(model.model)
        for tensor in (*module.parameters(), *module.buffers())
    ]


def _modes(model: GuardedModel) -> list[tuple[Any, str, Any]]:
    modes: list[tuple[Any, str, Any]] = []
    for module in modules_of(model.model):
        modes += [(m, "training", m.training) for m in module.modules()]
        for parameter in module.parameters():
            modes.append((parameter, "requires_grad", parameter.requires_grad))
            modes.append((parameter, "grad", parameter.grad))
    return modes


def _restore(modes: list[tuple[Any, str, Any]]) -> bool:
    """Put flags back as they were and return whether one had changed."""
    changed = False
    for owner, name, value in modes:
        if getattr(owner, name) is not value:
            changed = True
            setattr(owner, name, value)
    return changed
