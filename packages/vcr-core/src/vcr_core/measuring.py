"""What one view costs a model here: parameters, multiply-adds, time and memory."""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from vcr_core.availability import without_file
from vcr_core.components import build, load_attr, params_type, weights_of
from vcr_core.config.schema import ProtocolConfig
from vcr_core.engine.models import ready_model
from vcr_core.errors import ComponentUnavailable
from vcr_core.metering import modules_of
from vcr_core.specs import ModelSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from vcr_core.config.experiment import Chosen
    from vcr_core.protocols import VideoClassifier

PASSES = 3


def measure(chosen: Chosen, device: str = "cpu", passes: int = PASSES) -> dict[str, Any]:
    """Return what a model costs for one clip and one crop.

    A model whose weights are not here is measured with weights of no meaning, where it can be built
    so: its cost does not depend on them.

    Args:
        chosen: the model.
        device: where to measure.
        passes: the fastest of so many passes counts.

    Returns:
        ``weights`` (``own`` or ``none``), ``parameters``, ``giga_multiply_adds``, ``frames``,
        ``size``, ``device``, ``threads``, ``forward_s``, ``forward_backward_s``, and peak memory of
        each in megabytes with the share that was there before: of the process on a CPU, of torch's
        allocator on a GPU.

    Raises:
        ComponentUnavailable: if its weights are not here and it cannot be built without.
    """
    model, filled = _model(chosen)
    model = ready_model(model, ProtocolConfig(views="light")).to(device)
    side = model.clip.size
    clip = torch.rand(1, model.clip.frames, 3, side, side, device=device)
    before = _memory(device)
    with torch.no_grad(), FlopCounterMode(display=False) as counted:
        model.logits(clip)

    def forward() -> None:
        with torch.no_grad():
            model.logits(clip)

    def both() -> None:
        leaf = clip.clone().requires_grad_()
        model.logits(leaf).sum().backward()  # type: ignore[no-untyped-call]

    forward_s, forward_mb = _timed(forward, device, passes)
    spec = chosen.spec
    facts: dict[str, Any] = {
        "weights": "own" if filled else "none",
        "parameters": sum(p.numel() for m in modules_of(model) for p in m.parameters()),
        "giga_multiply_adds": counted.get_total_flops() / 2e9,
        "frames": model.clip.frames,
        "size": side,
        "device": device,
        "threads": torch.get_num_threads(),
        "before_mb": before,
        "forward_s": forward_s,
        "forward_mb": forward_mb,
    }
    if isinstance(spec, ModelSpec) and spec.differentiable:
        facts["forward_backward_s"], facts["forward_backward_mb"] = _timed(both, device, passes)
    return facts


def _model(chosen: Chosen) -> tuple[VideoClassifier, bool]:
    """Return the model, and whether its weights mean anything."""
    weights = weights_of(chosen)
    target = chosen.spec.unfilled if isinstance(chosen.spec, ModelSpec) else None
    if target is None or weights is None or not without_file(weights):
        model: VideoClassifier = build(chosen)
        return model, True
    struct = params_type(chosen.spec)
    if struct is None:
        raise ComponentUnavailable(f"model {chosen.ref}: its weights are not on this machine")
    import msgspec

    params = msgspec.convert(chosen.params, struct)
    made: VideoClassifier = load_attr(target, chosen)(params, replace(weights, file=""))
    return made, False


def _timed(run: Callable[[], None], device: str, passes: int) -> tuple[float, float]:
    """Return seconds of the fastest pass and peak memory in megabytes."""
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(passes):
        _wait(device)
        began = time.perf_counter()
        run()
        _wait(device)
        times.append(time.perf_counter() - began)
    return min(times), _memory(device)


def _wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def _memory(device: str) -> float:
    if device != "cpu":
        return torch.cuda.max_memory_allocated() / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1e3


def sentences(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the measurements as pairs of name and text."""
    without = "" if facts["weights"] == "own" else ", with weights of no meaning"
    before = facts["before_mb"]
    shown: list[tuple[str, str]] = [
        ("measured", f"{facts['device']}, {facts['threads']} threads{without}"),
        ("one view", f"{facts['frames']} frames of {facts['size']}x{facts['size']} px"),
        ("counted parameters", f"{facts['parameters'] / 1e6:,.3f} M"),
        ("counted multiply-adds", f"{facts['giga_multiply_adds']:,.1f} G"),
    ]
    for name, key in (("forward", "forward"), ("forward and backward", "forward_backward")):
        if f"{key}_s" in facts:
            peak = facts[f"{key}_mb"]
            text = f"{facts[f'{key}_s']:.3g} s, peak {peak:,.0f} MB ({before:,.0f} before)"
            shown.append((name, text))
    return shown
