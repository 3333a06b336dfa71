"""From planned ids to stacked videos; unreadable ones become failures, never gaps."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from vcr_core.errors import UsageError
from vcr_core.video.sampling import make_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from vcr_core.config.schema import ProtocolConfig
    from vcr_core.engine.setup import Setup
    from vcr_core.specs import ClipSpec
    from vcr_core.video.sampling import SamplingPlan


@dataclass(slots=True)
class Decoded:
    """One video, decoded.

    Attributes:
        id: video id.
        label: class index of the model.
        frames: ``[T, C, H, W]`` float32 in [0, 1], on the CPU.
        gather: ``[V, T']`` positions of the clips' frames.
        facts: the record's ``input`` field.
        seconds: time it took.
        fps: frames per second, if known.
    """

    id: str
    label: int
    frames: Tensor
    gather: Tensor
    facts: dict[str, Any]
    seconds: float
    fps: Any = None


def decode(setup: Setup, video_id: str) -> Decoded:
    """Read one video as the model's clip specification and the protocol want it."""
    started = time.perf_counter()
    item = setup.dataset.item(video_id)
    spec, protocol = setup.model.clip, setup.experiment.protocol
    clip = item.source.read(lambda count: plan_for(spec, protocol, count))
    plan = clip.plan
    frames = torch.from_numpy(clip.frames).permute(0, 3, 1, 2).to(torch.float32).div_(255)
    gather = torch.as_tensor(plan.gather, dtype=torch.int64)
    if protocol.space == "input":
        frames = _to_input(setup, frames)
    if not protocol.tie_frames:
        frames = frames[gather.flatten()]
        gather = torch.arange(gather.numel()).view_as(gather)
    info = clip.info
    facts = {
        "sha256": item.source.sha256(),
        "decoder": clip.backend,
        "frames_header": info.header_frames,
        "frames_decoded": clip.n_decoded,
        "fps": str(clip.fps) if clip.fps is not None else None,
        "size": [int(frames.shape[2]), int(frames.shape[3])],
        "indices": [int(i) for i in plan.distinct],
        "plan": f"{plan.policy} {spec.frames}x{spec.stride}x{gather.shape[0]} {spec.end}",
    }
    return Decoded(
        id=video_id,
        label=setup.label_map[item.label],
        frames=frames.contiguous(),
        gather=gather,
        facts=facts,
        seconds=time.perf_counter() - started,
        fps=clip.fps,
    )


def plan_for(spec: ClipSpec, protocol: ProtocolConfig, count: int) -> SamplingPlan:
    """Return the sampling plan of a model for a video of ``count`` frames."""
    clips = spec.clips if protocol.views == "full" else spec.light_clips
    return make_plan(
        count,
        frames=spec.frames,
        stride=spec.stride,
        clips=clips,
        policy=spec.policy,
        end=spec.end,
    )


def _to_input(setup: Setup, frames: Tensor) -> Tensor:
    resize = getattr(setup.model.model, "resize", None)
    if resize is None:
        raise UsageError(
            f"protocol.space = 'input': model {setup.experiment.model.ref!r} does not say how it "
            "resizes (it has no method 'resize'); use protocol.space = 'source'"
        )
    resized: Tensor = resize(frames.unsqueeze(0))[0]
    return resized


def stackable(videos: Sequence[Decoded]) -> list[list[Decoded]]:
    """Split a batch into groups of equal shape and plan, in order of first appearance."""
    groups: dict[tuple[Any, ...], list[Decoded]] = {}
    for video in videos:
        key = (tuple(video.frames.shape), video.gather.numpy().tobytes())
        groups.setdefault(key, []).append(video)
    return list(groups.values())
