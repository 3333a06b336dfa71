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

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from vcr_core.config.schema import ProtocolConfig
    from vcr_core.engine.setup import Setup
    from vcr_core.protocols import Sampler, VideoItem
    from vcr_core.specs import ClipSpec
    from vcr_core.video.info import Clip
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
        after: what a transform before the sampling made of it.
    """

    id: str
    label: int
    frames: Tensor
    gather: Tensor
    facts: dict[str, Any]
    seconds: float
    fps: Any = None
    after: After | None = None


@dataclass(slots=True)
class After:
    """A video as it is sampled after a transform.

    Attributes:
        frames: ``[T2, C, H, W]`` float32 in [0, 1], on the CPU.
        gather: ``[V, T']`` positions of the clips' frames.
        facts: the record's ``transform`` field.
        aligned: whether its frames can be compared with the clean ones one by one.
        seconds: time the transform took.
    """

    frames: Tensor
    gather: Tensor
    facts: dict[str, Any]
    aligned: bool
    seconds: float


def decode(setup: Setup, video_id: str) -> Decoded:
    """Read one video as the model's clip specification and the protocol want it."""
    if setup.stage != "frames":
        from vcr_core.engine.transforming import decode_transformed

        return decode_transformed(setup, video_id)
    started = time.perf_counter()
    item = setup.dataset.item(video_id)
    clip = item.source.read(sampler_of(setup))
    frames, gather = framed(setup, clip.frames, clip.plan)
    return Decoded(
        id=video_id,
        label=setup.label_map[item.label],
        frames=frames,
        gather=gather,
        facts=input_facts(setup, item, clip, clip.plan, frames),
        seconds=time.perf_counter() - started,
        fps=clip.fps,
    )


def sampler_of(setup: Setup) -> Sampler:
    """Return how the model samples a video."""
    spec, protocol = setup.model.clip, setup.experiment.protocol
    return lambda count: plan_for(spec, protocol, count)


def framed(setup: Setup, frames: NDArray[np.uint8], plan: SamplingPlan) -> tuple[Tensor, Tensor]:
    """Return a plan's distinct frames ``[U, H, W, 3]`` as the attacked tensor, and its gather."""
    protocol = setup.experiment.protocol
    video = torch.from_numpy(frames).permute(0, 3, 1, 2).to(torch.float32).div_(255)
    gather = torch.as_tensor(plan.gather, dtype=torch.int64)
    if protocol.space == "input":
        video = _to_input(setup, video)
    if not protocol.tie_frames:
        video = video[gather.flatten()]
        gather = torch.arange(gather.numel()).view_as(gather)
    return video.contiguous(), gather


def input_facts(
    setup: Setup, item: VideoItem, clip: Clip, plan: SamplingPlan, frames: Tensor
) -> dict[str, Any]:
    """Return the record's ``input`` field."""
    spec, info = setup.model.clip, clip.info
    return {
        "sha256": item.source.sha256(),
        "decoder": clip.backend,
        "frames_header": info.header_frames,
        "frames_decoded": clip.n_decoded,
        "fps": str(clip.fps) if clip.fps is not None else None,
        "size": [int(frames.shape[2]), int(frames.shape[3])],
        "indices": [int(i) for i in plan.distinct],
        "plan": f"{plan.policy} {spec.frames}x{spec.stride}x{len(plan.table)} {spec.end}",
    }


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
        key: tuple[Any, ...] = (tuple(video.frames.shape), video.gather.numpy().tobytes())
        if video.after is not None:
            after = video.after
            key = (*key, tuple(after.frames.shape), after.gather.numpy().tobytes())
        groups.setdefault(key, []).append(video)
    return list(groups.values())
