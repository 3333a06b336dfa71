"""Transforms of a video before anything is sampled from it, and of the sampling itself."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from vcr_core.corruption import content_sha256
from vcr_core.engine.decode import After, Decoded, framed, input_facts, rate_of, sampler_of
from vcr_core.errors import ContractViolation
from vcr_core.protocols import (
    PlanTransform,
    SourceTransform,
    TransformContext,
    Transformed,
)
from vcr_core.randomness import VideoRandom
from vcr_core.seeding import derive_seed
from vcr_core.video.sampling import SamplingPlan, whole_video
from vcr_core.whole_videos import check_transformed, donor, whole_of

if TYPE_CHECKING:
    from torch import Tensor

    from vcr_core.engine.setup import Setup
    from vcr_core.protocols import VideoItem
    from vcr_core.video.info import Clip


def decode_transformed(setup: Setup, video_id: str) -> Decoded:
    """Read one video and sample it twice: as it is, and after the attack's transform.

    Raises:
        ContractViolation: if the transform does not keep to its contract.
        VideoSkipped: if the video cannot be transformed.
    """
    item = setup.dataset.item(video_id)
    if setup.stage == "plan":
        return _replanned(setup, item)
    return _transformed(setup, item)


def _transformed(setup: Setup, item: VideoItem) -> Decoded:
    started = time.perf_counter()
    attack: Any = setup.attack
    name = setup.experiment.attack.ref if setup.experiment.attack else ""
    if not isinstance(attack, SourceTransform):
        raise ContractViolation(f"attack {name!r} declares stage 'source' and has no 'transform'")
    clip = item.source.read(whole_video)
    whole = whole_of(item, clip)
    seed = derive_seed(setup.experiment.seed, item.id, "attack")
    context = TransformContext(
        VideoRandom([seed]), lambda other: donor(setup.dataset, item, seed, other_label=other)
    )
    read = time.perf_counter()
    before = whole.frames.tobytes() if whole.frames.size < _CHECKED_BYTES else b""
    changed = attack.transform(whole, context)
    spent = time.perf_counter() - read
    if before and before != whole.frames.tobytes():
        raise ContractViolation(f"attack {name!r} changed the video it was given in place")
    check_transformed(f"attack {name!r}", changed, whole)
    sampler = sampler_of(setup)
    plan, after_plan = sampler(len(whole.frames)), sampler(len(changed.frames))
    frames, gather = framed(setup, whole.frames[plan.distinct], plan)
    after, after_gather = framed(setup, changed.frames[after_plan.distinct], after_plan)
    facts = {**changed.facts, **_sampled(changed, after_plan)}
    aligned = changed.aligned and frames.shape == after.shape
    return _decoded(
        setup, item, clip, plan, (frames, gather),
        After(after, after_gather, facts, aligned, spent, rate_of(setup, whole.fps, after_plan)),
        seconds=time.perf_counter() - started - spent,
    )  # fmt: skip


def _replanned(setup: Setup, item: VideoItem) -> Decoded:
    started = time.perf_counter()
    attack: Any = setup.attack
    name = setup.experiment.attack.ref if setup.experiment.attack else ""
    if not isinstance(attack, PlanTransform):
        raise ContractViolation(f"attack {name!r} declares stage 'plan' and has no 'plans'")
    sampler = sampler_of(setup)
    made: list[tuple[SamplingPlan, SamplingPlan]] = []

    def both(count: int) -> SamplingPlan:
        # The frame rate is known once the file is open; a first look asks for one frame.
        plan, after = attack.plans(sampler, count, fps)
        made.append((plan, after))
        return SamplingPlan((*plan.table, *after.table), plan.policy, count)

    fps = item.source.read(_first_frame).fps
    clip = item.source.read(both)
    plan, after_plan = made[-1]
    place = {int(index): i for i, index in enumerate(clip.plan.distinct)}

    def of(part: SamplingPlan) -> tuple[Tensor, Tensor]:
        return framed(setup, clip.frames[[place[int(i)] for i in part.distinct]], part)

    frames, gather = of(plan)
    after, after_gather = of(after_plan)
    facts = {
        "indices": [int(i) for i in after_plan.distinct],
        "sha256": content_sha256(clip.frames[[place[int(i)] for i in after_plan.distinct]]),
    }
    return _decoded(
        setup, item, clip, plan, (frames, gather),
        After(after, after_gather, facts, frames.shape == after.shape, 0.0,
              rate_of(setup, clip.fps, after_plan)),
        seconds=time.perf_counter() - started,
    )  # fmt: skip


_CHECKED_BYTES = 1 << 26
"""Videos up to this size are compared with themselves after a transform had them."""


def _decoded(
    setup: Setup,
    item: VideoItem,
    clip: Clip,
    plan: SamplingPlan,
    sampled: tuple[Tensor, Tensor],
    after: After,
    *,
    seconds: float,
) -> Decoded:
    frames, gather = sampled
    return Decoded(
        id=item.id,
        label=setup.label_map[item.label],
        frames=frames,
        gather=gather,
        facts=input_facts(setup, item.source.sha256(), clip, plan, frames),
        seconds=seconds,
        fps=clip.fps,
        after=after,
        rate=rate_of(setup, clip.fps, plan),
        sample={**item.sample, **clip.facts},
    )


def _first_frame(count: int) -> SamplingPlan:
    return SamplingPlan(((0,),), "first", count)


def _sampled(changed: Transformed, plan: SamplingPlan) -> dict[str, Any]:
    """Return which frames were looked at, and how many of the looks fall into the segment."""
    facts: dict[str, Any] = {
        "frames": len(changed.frames),
        "indices": [int(i) for i in plan.distinct],
        "sources": [changed.index_map[int(i)] for i in plan.distinct],
        "sha256": content_sha256(changed.frames),
    }
    start, end = changed.facts.get("start"), changed.facts.get("end")
    if start is not None and end is not None:
        looks = np.asarray(plan.table)
        facts["overlap"] = float(((looks >= start) & (looks < end)).mean())
    return facts
