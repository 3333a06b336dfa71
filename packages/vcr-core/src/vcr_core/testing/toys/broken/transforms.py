"""Transforms that break one rule each."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from vcr_core.protocols import Sampler, TransformContext, Transformed, WholeVideo
from vcr_core.testing.toys.transforms import DropOne
from vcr_core.video.sampling import SamplingPlan


class InPlace:
    """Blackens the video it was given."""

    def transform(self, video: WholeVideo, ctx: TransformContext) -> Transformed:
        """Return the same frames."""
        video.frames[:] = 0
        return Transformed(video.frames, tuple(range(len(video.frames))))


class Floats:
    """Forgets to go back to levels."""

    def transform(self, video: WholeVideo, ctx: TransformContext) -> Transformed:
        """Return frames as floats."""
        frames: Any = video.frames / 255
        return Transformed(frames, tuple(range(len(video.frames))))


class ShortMap:
    """Says of one frame only where it came from."""

    def transform(self, video: WholeVideo, ctx: TransformContext) -> Transformed:
        """Return a copy with a short map."""
        return Transformed(video.frames.copy(), (0,))


class Forgetful(DropOne):
    """Uses a generator of its own."""

    def transform(self, video: WholeVideo, ctx: TransformContext) -> Transformed:
        """Return a video without a frame that the global generator names."""
        import numpy as np

        count = len(video.frames)
        index = np.delete(np.arange(count), np.random.randint(count)) if count > 1 else [0]
        return Transformed(video.frames[index], tuple(int(i) for i in index))


class OtherShape:
    """Samples one clip where two were asked for."""

    def plans(
        self, sampler: Sampler, count: int, fps: Fraction | None
    ) -> tuple[SamplingPlan, SamplingPlan]:
        """Return plans of different shapes."""
        plan = sampler(count)
        return plan, SamplingPlan(plan.table[:1], plan.policy, count)
