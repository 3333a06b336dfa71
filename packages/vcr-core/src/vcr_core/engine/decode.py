"""From planned ids to stacked videos; unreadable ones become failures, never gaps."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from vcr_core.errors import UsageError
from vcr_core.video.sampling import make_plan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from vcr_core.config.schema import ProtocolConfig
    from vcr_core.engine.setup import Setup
    from vcr_core.protocols import Sampler, VideoItem
    from vcr_core.specs import ClipSpec
    from vcr_core.video.info import Clip
    from vcr_core.video.sampling import SamplingPlan


_REDUCED_AT_ONCE = 16
"""Frames that are averaged down together."""


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
        rate: frames per second of a clip, for models that have to know it.
        sample: the record's ``sample`` field.
        as_attacked: the same frames as the source model of the attack sees them, where that is not
            the evaluated one.
    """

    id: str
    label: int
    frames: Tensor
    gather: Tensor
    facts: dict[str, Any]
    seconds: float
    fps: Any = None
    after: After | None = None
    rate: float | None = None
    sample: dict[str, Any] = field(default_factory=dict)
    as_attacked: Decoded | None = None


@dataclass(slots=True)
class After:
    """A video as it is sampled after a transform.

    Attributes:
        frames: ``[T2, C, H, W]`` float32 in [0, 1], on the CPU.
        gather: ``[V, T']`` positions of the clips' frames.
        facts: the record's ``transform`` field.
        aligned: whether its frames can be compared with the clean ones one by one.
        seconds: time the transform took.
        rate: frames per second of a clip, for models that have to know it.
    """

    frames: Tensor
    gather: Tensor
    facts: dict[str, Any]
    aligned: bool
    seconds: float
    rate: float | None = None


def decode(setup: Setup, video_id: str) -> Decoded:
    """Read one video as the model's clip specification and the protocol want it."""
    if setup.stage != "frames":
        from vcr_core.engine.transforming import decode_transformed

        return decode_transformed(setup, video_id)
    if setup.source is not None:
        from vcr_core.engine.transfer import decode_for_transfer

        return decode_for_transfer(setup, setup.source, video_id)
    started = time.perf_counter()
    item = setup.dataset.item(video_id)
    content = item.source.sha256()
    clip = _sampled(setup, item, content)
    frames, gather = framed(setup, clip.frames, clip.plan)
    return Decoded(
        id=video_id,
        label=setup.label_map[item.label],
        frames=frames,
        gather=gather,
        facts=input_facts(setup, content, clip, clip.plan, frames),
        seconds=time.perf_counter() - started,
        fps=clip.fps,
        rate=rate_of(setup, clip.fps, clip.plan),
        sample={**item.sample, **clip.facts},
    )


def _sampled(setup: Setup, item: VideoItem, content: str | None) -> Clip:
    """Return what the model samples of a video: from the cache of frames, or decoded."""

    def read() -> Clip:
        clip = item.source.read(sampler_of(setup))
        return replace(clip, frames=reduced(clip.frames, setup.model.clip.reduce_to))

    kept = setup.reuse.frames if setup.reuse is not None else None
    return read() if kept is None or content is None else kept.read(item.id, content, read)


def rate_of(setup: Setup, fps: Fraction | None, plan: SamplingPlan) -> float | None:
    """Return the frames per second of the plan's clips, where the model has to know them."""
    if fps is None or not setup.model.is_timed:
        return None
    return plan_rate(fps, plan)


def plan_rate(fps: Fraction, plan: SamplingPlan) -> float:
    """Return the frames per second of a plan's clips."""
    row = plan.table[0]
    return float(fps) / max(1, row[1] - row[0] if len(row) > 1 else 1)


def sampler_of(setup: Setup) -> Sampler:
    """Return how the model samples a video."""
    spec, protocol = setup.model.clip, setup.experiment.protocol
    return lambda count: plan_for(spec, protocol, count)


def framed(setup: Setup, frames: NDArray[np.uint8], plan: SamplingPlan) -> tuple[Tensor, Tensor]:
    """Return a plan's distinct frames ``[U, H, W, 3]`` as the attacked tensor, and its gather."""
    protocol = setup.experiment.protocol
    frames = reduced(frames, setup.model.clip.reduce_to)
    video = torch.from_numpy(frames).permute(0, 3, 1, 2).to(torch.float32).div_(255)
    gather = torch.as_tensor(plan.gather, dtype=torch.int64)
    if protocol.space == "input":
        video = _to_input(setup, video)
    if not protocol.tie_frames:
        video = video[gather.flatten()]
        gather = torch.arange(gather.numel()).view_as(gather)
    return video.contiguous(), gather


def reduced(frames: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Return frames ``[U, H, W, 3]`` with the short side averaged down to ``side``.

    Frames that are no larger, and all with ``side`` 0, come back as they are.
    """
    height, width = frames.shape[1:3]
    if side == 0 or min(height, width) <= side:
        return frames
    scale = side / min(height, width)
    to = (max(side, round(height * scale)), max(side, round(width * scale)))
    parts = []
    # A few at a time: as floats a whole video takes four times its memory.
    for part in torch.split(torch.from_numpy(frames), _REDUCED_AT_ONCE):
        planes = part.permute(0, 3, 1, 2).to(torch.float32)
        small = functional.interpolate(planes, to, mode="area")
        parts.append(small.round_().to(torch.uint8).permute(0, 2, 3, 1))
    return torch.cat(parts).contiguous().numpy()


def input_facts(
    setup: Setup, content: str | None, clip: Clip, plan: SamplingPlan, frames: Tensor
) -> dict[str, Any]:
    """Return the record's ``input`` field."""
    spec, info = setup.model.clip, clip.info
    return {
        "sha256": content,
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
    """Split a batch into groups of equal shape, plan and rate, in order of first appearance.

    Where an attack comes from another model, its groups are those of that model's own run.
    """
    groups: dict[tuple[Any, ...], list[Decoded]] = {}
    for video in videos:
        seen = video.as_attacked or video
        key: tuple[Any, ...] = (tuple(seen.frames.shape), seen.gather.numpy().tobytes(),
                                seen.rate)  # fmt: skip
        if video.after is not None:
            after = video.after
            shape = tuple(after.frames.shape)
            key = (*key, shape, after.gather.numpy().tobytes(), after.rate)
        groups.setdefault(key, []).append(video)
    return list(groups.values())
