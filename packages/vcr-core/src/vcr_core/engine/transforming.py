"""Transforms of a video before anything is sampled from it, and of the sampling itself."""

from __future__ import annotations

import time
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from vcr_core.engine.decode import After, Decoded, framed, input_facts, sampler_of
from vcr_core.errors import ContractViolation, NotAvailable
from vcr_core.protocols import (
    PlanTransform,
    SourceTransform,
    TransformContext,
    Transformed,
    WholeVideo,
)
from vcr_core.randomness import VideoRandom
from vcr_core.seeding import derive_seed
from vcr_core.video.sampling import SamplingPlan, whole_video

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from vcr_core.engine.setup import Setup
    from vcr_core.protocols import VideoItem
    from vcr_core.video.info import Clip

_DONORS_TRIED = 8


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
    whole = _whole(item, clip)
    seed = derive_seed(setup.experiment.seed, item.id, "attack")
    context = TransformContext(
        VideoRandom([seed]), lambda other: _donor(setup, item, seed, other_label=other)
    )
    read = time.perf_counter()
    before = whole.frames.tobytes() if whole.frames.size < _CHECKED_BYTES else b""
    changed = attack.transform(whole, context)
    spent = time.perf_counter() - read
    if before and before != whole.frames.tobytes():
        raise ContractViolation(f"attack {name!r} changed the video it was given in place")
    _check(name, changed, whole)
    sampler = sampler_of(setup)
    plan, after_plan = sampler(len(whole.frames)), sampler(len(changed.frames))
    frames, gather = framed(setup, whole.frames[plan.distinct], plan)
    after, after_gather = framed(setup, changed.frames[after_plan.distinct], after_plan)
    facts = {**changed.facts, **_sampled(changed, after_plan)}
    aligned = changed.aligned and frames.shape == after.shape
    return _decoded(
        setup, item, clip, plan, (frames, gather),
        After(after, after_gather, facts, aligned, spent),
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
    facts = {"indices": [int(i) for i in after_plan.distinct]}
    return _decoded(
        setup, item, clip, plan, (frames, gather),
        After(after, after_gather, facts, frames.shape == after.shape, 0.0),
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
        facts=input_facts(setup, item, clip, plan, frames),
        seconds=seconds,
        fps=clip.fps,
        after=after,
    )


def _whole(item: VideoItem, clip: Clip) -> WholeVideo:
    fps = None if clip.fps is None else Fraction(clip.fps)
    return WholeVideo(item.id, item.label, clip.frames, fps)


def _first_frame(count: int) -> SamplingPlan:
    return SamplingPlan(((0,),), "first", count)


def _sampled(changed: Transformed, plan: SamplingPlan) -> dict[str, Any]:
    """Return which frames were looked at, and how many of the looks fall into the segment."""
    facts: dict[str, Any] = {
        "frames": len(changed.frames),
        "indices": [int(i) for i in plan.distinct],
        "sources": [changed.index_map[int(i)] for i in plan.distinct],
    }
    start, end = changed.facts.get("start"), changed.facts.get("end")
    if start is not None and end is not None:
        looks = np.asarray(plan.table)
        facts["overlap"] = float(((looks >= start) & (looks < end)).mean())
    return facts


def _check(name: str, changed: Any, whole: WholeVideo) -> None:
    who = f"attack {name!r}"
    if not isinstance(changed, Transformed):
        raise ContractViolation(f"{who} returned {type(changed).__name__}, not a Transformed")
    frames: NDArray[Any] = changed.frames
    if frames.dtype != np.uint8 or frames.ndim != 4 or frames.shape[1:] != whole.frames.shape[1:]:
        raise ContractViolation(
            f"{who} returned frames {frames.dtype} {list(frames.shape)} for a video of uint8 "
            f"{list(whole.frames.shape)}"
        )
    if not len(frames):
        raise ContractViolation(f"{who} left no frame of {whole.id}")
    if len(changed.index_map) != len(frames):
        raise ContractViolation(
            f"{who} returned {len(frames)} frames and an index map of {len(changed.index_map)}"
        )


def _donor(setup: Setup, item: VideoItem, seed: int, *, other_label: bool) -> WholeVideo:
    """Return another video, chosen by the seed; unreadable ones are passed over.

    Raises:
        NotAvailable: if there is none.
    """
    from vcr_core.video.info import VideoReadError

    dataset = setup.dataset
    others = [i for i in sorted(dataset.ids()) if i != item.id]
    if other_label:
        others = [i for i in others if dataset.item(i).label != item.label] or others
    if not others:
        raise NotAvailable(f"dataset has no video besides {item.id} to take frames from")
    random = VideoRandom([seed]).child("donor")
    failures: list[str] = []
    for _ in range(_DONORS_TRIED):
        chosen = dataset.item(others[int(random.integers(0, len(others)))])
        try:
            return _whole(chosen, chosen.source.read(whole_video))
        except VideoReadError as error:
            failures.append(str(error))
    raise NotAvailable(f"no readable video to take frames from: {failures[-1]}")
