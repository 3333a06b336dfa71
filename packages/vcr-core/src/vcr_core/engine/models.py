"""Models as a run uses them: built, frozen, and computing as the protocol and the machine ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from vcr_core.components import build
from vcr_core.errors import UsageError
from vcr_core.metering import GuardedModel, frozen, modules_of
from vcr_core.protocols import ViewedClassifier
from vcr_core.seeding import isolated_random_state

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from vcr_core.config.experiment import Chosen, Experiment
    from vcr_core.config.schema import ProtocolConfig
    from vcr_core.protocols import VideoClassifier

DTYPES = {"off": None, "bfloat16": torch.bfloat16, "float16": torch.float16}
"""What ``protocol.autocast`` means."""

_laid: WeakKeyDictionary[nn.Module, None] = WeakKeyDictionary()
"""Convolutions whose weights were put into another order."""


def passes_of(experiment: Experiment) -> dict[str, Any]:
    """Return what decides how the passes of an experiment's model are computed."""
    return {"autocast": experiment.protocol.autocast, **runtime_options(experiment)}


def runtime_options(experiment: Experiment) -> dict[str, bool]:
    """Return those of ``[runtime]``, which may change the last bits; a run keeps them for good."""
    runtime = experiment.runtime
    return {"compile": runtime.compile, "channels_last": runtime.channels_last}


def built_model(
    chosen: Chosen, protocol: ProtocolConfig, folders: Sequence[Path] = ()
) -> VideoClassifier:
    """Build a model by reference; see :func:`ready_model`."""
    return ready_model(build(chosen, folders), protocol)


def ready_model(model: VideoClassifier, protocol: ProtocolConfig) -> VideoClassifier:
    """Return a model with frozen parameters and the crops of ``protocol.views``."""
    if isinstance(model, ViewedClassifier):
        model = model.for_views(protocol.views)
    return frozen(model)


def guarded_model(
    model: VideoClassifier, experiment: Experiment, device: torch.device
) -> GuardedModel:
    """Return the model that a run judges, behind its guard.

    It is on the device, makes the crops and has the precision that the protocol asks for, and is
    compiled and laid out as the machine's part of the experiment says.

    Raises:
        UsageError: if ``runtime.compile`` asks for what does not work here.
    """
    placed = ready_model(model, experiment.protocol).to(device)
    runtime = experiment.runtime
    guarded = GuardedModel(
        placed, dtype=DTYPES[experiment.protocol.autocast], is_compiled=runtime.compile
    )
    as_it_was(placed)
    if runtime.channels_last:
        lay_channels_last(placed)
    if runtime.compile:
        compile_networks(placed, experiment.model.ref)
        _try(guarded, experiment, device)
    return guarded


def as_it_was(model: VideoClassifier) -> None:
    """Undo :func:`lay_channels_last` and :func:`compile_networks`: an object may be used again."""
    for network in modules_of(model):
        forward = vars(network).get("forward")
        if isinstance(forward, _Compiled):
            del network.forward
            if forward.before is not None:
                network.forward = forward.before
        for module in network.modules():
            if isinstance(module, nn.Conv2d | nn.Conv3d) and module in _laid:
                module.weight.data = module.weight.data.contiguous()
                del _laid[module]


def lay_channels_last(model: VideoClassifier) -> None:
    """Order the weights of 2-D and 3-D convolutions with the channels last.

    The libraries underneath then compute, and hand on, in that order; the model gets and gives what
    it did before.
    """
    for network in modules_of(model):
        for module in network.modules():
            if not isinstance(module, nn.Conv2d | nn.Conv3d):
                continue
            order = torch.channels_last if module.weight.dim() == 4 else torch.channels_last_3d
            if not module.weight.is_contiguous(memory_format=order):
                module.weight.data = module.weight.data.contiguous(memory_format=order)
                _laid[module] = None


def compile_networks(model: VideoClassifier, ref: str) -> None:
    """Let ``torch.compile`` take the forward pass of a model's outermost modules.

    The modules stay what they are, with their hooks: the guard goes on seeing every call.

    Raises:
        UsageError: if there are none.
    """
    networks = modules_of(model)
    if not networks:
        raise UsageError(f"runtime.compile = true: model {ref!r} has no torch module to compile")
    for network in networks:
        compiled: Any = _Compiled(network)
        network.forward = compiled


class _Compiled:
    """A module's forward pass, compiled; ``before`` is one that the object had of its own."""

    def __init__(self, network: nn.Module) -> None:
        self.before: Any = vars(network).get("forward")
        self._run: Any = torch.compile(network.forward)

    def __call__(self, *inputs: Any, **more: Any) -> Any:
        return self._run(*inputs, **more)


def _try(model: GuardedModel, experiment: Experiment, device: torch.device) -> None:
    """Compile now, so that what fails ends a run before its first video.

    Raises:
        UsageError: with what the compiler said.
    """
    clip, backward = model.clip, bool(getattr(experiment.model.spec, "differentiable", True))
    # Of one clip alone the compiler would make a special case.
    shape = (2, clip.frames, 3, clip.size, clip.size)
    clips = torch.full(shape, 0.5, device=device, requires_grad=backward)
    try:
        with isolated_random_state(0), torch.set_grad_enabled(backward):
            out = model.at_rate(None).logits(clips)
            if backward:
                torch.autograd.grad(out.sum(), clips)
    except (RuntimeError, ImportError, OSError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UsageError(
            f"runtime.compile = true: model {experiment.model.ref!r} cannot be compiled here "
            f"({type(error).__name__}: {first}); set runtime.compile = false"
        ) from error
