"""What is the same for all videos: how it fits other shapes, and how a run finds it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load
from torch.nn.functional import interpolate
from vcr_core.errors import IncompatibleComponents, NotAvailable

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.threat import ThreatModel

DELTA_FILE = "delta.safetensors"
REPORT_FILE = "training.json"


def place(delta: Tensor, frames: int, size: tuple[int, int]) -> Tensor:
    """Return perturbations for videos of other shapes; no value grows.

    Args:
        delta: ``[N, T0, C, H0, W0]``.
        frames: ``T``; a longer video repeats the perturbation, a shorter one takes its beginning.
        size: ``H, W``; frames are resized bilinearly, each value a mean of its neighbours.

    Returns:
        ``[N, T, C, H, W]``, differentiable.
    """
    if delta.shape[1] != frames:
        delta = delta[:, torch.arange(frames, device=delta.device) % delta.shape[1]]
    if tuple(delta.shape[-2:]) == tuple(size):
        return delta
    flat = interpolate(delta.flatten(0, 1), size=size, mode="bilinear", align_corners=False)
    return flat.view(*delta.shape[:3], *size)


def radius_facts(threat: ThreatModel) -> dict[str, Any]:
    """Return what a perturbation was made for, as plain data."""
    eps = threat.eps if isinstance(threat.eps, float | int) else threat.eps.tolist()
    if threat.per_frame_eps is not None:
        return {"per_frame_eps": list(threat.per_frame_eps)}
    return {"eps": eps}


def prepared(attack: str, ctx: AttackContext, goals: Goals) -> Tensor:
    """Return what was trained for each video, ``[B, ...]``.

    Args:
        attack: name of the attack, for messages.
        ctx: the threat model and the folder of the artifact.
        goals: of a targeted contest, the targets choose.

    Raises:
        NotAvailable: if nothing was prepared, or not for a target.
        IncompatibleComponents: if it was prepared for another radius.
    """
    folder = ctx.folder
    if folder is None or not (folder / DELTA_FILE).is_file():
        raise NotAvailable(
            f"attack {attack} has no perturbation to apply; make it with 'vcr prepare {attack}' "
            "and the options of the run"
        )
    report: dict[str, Any] = json.loads((folder / REPORT_FILE).read_text(encoding="utf-8"))
    have, need = report["threat"], radius_facts(ctx.threat)
    if have != need:
        raise IncompatibleComponents(
            f"the universal perturbation was prepared for {have}, and the run has {need}; "
            "run vcr prepare with the options of the run"
        )
    deltas: Tensor = load((folder / DELTA_FILE).read_bytes())["delta"]
    return deltas[_rows_of(report["targets"], goals)]


def _rows_of(trained: list[int] | None, goals: Goals) -> list[int]:
    """Return which perturbation each video gets."""
    if goals.targets is None and trained is None:
        return [0] * len(goals.labels)
    if goals.targets is None or trained is None:
        have, need = ("untargeted", "targeted")[:: 1 if trained is None else -1]
        raise NotAvailable(f"the universal perturbation is {have}, and the run is {need}")
    missing = sorted({*goals.targets.tolist()} - {*trained})
    if missing:
        raise NotAvailable(
            f"no universal perturbation was prepared for class {missing[0]} (there are those for "
            f"{', '.join(map(str, trained))})"
        )
    return [trained.index(target) for target in goals.targets.tolist()]
