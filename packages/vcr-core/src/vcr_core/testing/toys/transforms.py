"""A transform of whole videos and one of the sampling."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from vcr_core.errors import VideoSkipped
from vcr_core.protocols import Sampler, TransformContext, Transformed, WholeVideo
from vcr_core.video.sampling import SamplingPlan


class DropOne:
    """Leaves one frame out, which the video's generator names; a single frame stays."""

    def transform(self, video: WholeVideo, ctx: TransformContext) -> Transformed:
        """Return the shorter video."""
        count = len(video.frames)
        index = np.arange(count)
        if count > 1:
            index = np.delete(index, int(ctx.random.integers(0, count)))
        return Transformed(video.frames[index], tuple(index.tolist()), aligned=count == len(index))


class OneLater:
    """Looks one frame later."""

    def plans(
        self, sampler: Sampler, count: int, fps: Fraction | None
    ) -> tuple[SamplingPlan, SamplingPlan]:
        """Return the plan and its shift.

        Raises:
            VideoSkipped: if the video ends there.
        """
        plan = sampler(count)
        later = tuple(tuple(index + 1 for index in row) for row in plan.table)
        if max(map(max, later)) >= count:
            raise VideoSkipped(f"{count} frames are too few to look one frame later")
        return plan, SamplingPlan(later, plan.policy, count)
