"""Checks of attacks that act before the sampling of a video, or on it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from vcr_core.errors import VcrError
from vcr_core.protocols import (
    PlanTransform,
    SourceTransform,
    TransformContext,
    Transformed,
    WholeVideo,
)
from vcr_core.randomness import VideoRandom
from vcr_core.specs import AttackSpec
from vcr_core.testing.checks.ambient import under_state
from vcr_core.testing.checks.inputs import video
from vcr_core.testing.contract import Subject, require
from vcr_core.video.sampling import SamplingPlan, make_plan

_FPS = Fraction(10)


def whole_videos(subject: Subject) -> None:
    """A whole video comes back as uint8 frames of its size, each with its source."""
    for count, height, width in ((30, 24, 32), (30, 25, 33), (7, 24, 32), (1, 24, 32)):
        given = _whole(1, count, height, width)
        kept = given.frames.copy()
        found: Any = _transform(subject, given, seed=1)
        require(np.array_equal(given.frames, kept), "it changed the video in place")
        require(
            isinstance(found, Transformed),
            f"it returned {type(found).__name__}, not a Transformed",
        )
        size = f"a video of {count} frames of {height} x {width}"
        frames = found.frames
        require(frames.dtype == np.uint8, f"{size} came back as {frames.dtype}")
        require(
            frames.ndim == 4 and frames.shape[1:] == kept.shape[1:] and len(frames) > 0,
            f"{size} came back with shape {list(frames.shape)}",
        )
        require(
            len(found.index_map) == len(frames),
            f"{size}: {len(frames)} frames and an index map of {len(found.index_map)}",
        )
        require(
            all(-1 <= index < count for index in found.index_map),
            f"{size}: the index map names frames that are not there",
        )


def seeded(subject: Subject) -> None:
    """Same seed, same frames; another seed differs where the spec says that it is random."""
    given = _whole(1, 30, 24, 32)
    first = under_state(1, lambda: _transform(subject, given, seed=1), "the transform")
    second = under_state(2, lambda: _transform(subject, given, seed=1), "the transform")
    require(_equal(first, second), "two calls with the same seed differ")
    others = [_transform(subject, given, seed=s) for s in range(2, 8)]
    differs = any(not _equal(first, other) for other in others)
    if _spec(subject).stochastic:
        require(differs, "seven seeds give the same frames: the spec says stochastic=True")
    else:
        require(not differs, "another seed gives other frames: set stochastic=True in the spec")


def plans(subject: Subject) -> None:
    """Both plans have as many clips of as many frames as the sampler asks for, or it skips."""
    component: Any = subject.build()
    require(isinstance(component, PlanTransform), "stage 'plan' needs a method 'plans'")
    for count, fps in (
        (60, Fraction(30)),
        (60, Fraction(30000, 1001)),
        (9, Fraction(5)),
        (60, None),
    ):
        made = _plans(component, count, fps)
        if made is None:
            continue
        require(made == _plans(component, count, fps), "two calls give different plans")
        for plan in made:
            require(isinstance(plan, SamplingPlan), "it returned something else than two plans")
            shape = (len(plan.table), len(plan.table[0]), plan.n_frames)
            require(shape == (2, 4, count), f"clips, frames and video length became {shape}")


def _plans(component: PlanTransform, count: int, fps: Fraction | None) -> Any:
    try:
        return component.plans(lambda n: make_plan(n, frames=4, clips=2), count, fps)
    except VcrError:  # skipped, or a frame rate that it cannot do without
        return None


def _transform(subject: Subject, given: WholeVideo, seed: int) -> Any:
    component: Any = subject.build()
    require(isinstance(component, SourceTransform), "stage 'source' needs a method 'transform'")
    context = TransformContext(VideoRandom([seed]), lambda _other: _whole(2, 24, 20, 40))
    return component.transform(given, context)


def _whole(seed: int, count: int, height: int, width: int) -> WholeVideo:
    pixels = video(seed, 1, count, height, width)[0].permute(0, 2, 3, 1)
    return WholeVideo(f"kit/{seed}", seed, (pixels * 255).round().byte().numpy(), _FPS)


def _equal(first: Transformed, second: Transformed) -> bool:
    return (
        np.array_equal(first.frames, second.frames)
        and first.index_map == second.index_map
        and dict(first.facts) == dict(second.facts)
    )


def _spec(subject: Subject) -> AttackSpec:
    spec = subject.spec
    if not isinstance(spec, AttackSpec):  # pragma: no cover - the catalog asks attacks only
        raise TypeError(spec.kind)
    return spec
