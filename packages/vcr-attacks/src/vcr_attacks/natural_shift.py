"""The same sampling, a moment earlier or later: a perturbation that the camera made."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from vcr_core.errors import IncompatibleComponents, VideoSkipped
from vcr_core.video.sampling import SamplingPlan

from vcr_attacks.params.natural import NaturalShiftParams

if TYPE_CHECKING:
    from vcr_core.protocols import Sampler


class NaturalShift:
    """All sampled frames moved by ``steps`` steps of 1/15 s.

    Gu, Yang, Ngiam, Le, Shlens, "Using videos to evaluate image model robustness", arXiv
    1904.10076, section 2: a model that is right on an anchor should be right on its neighbours. The
    anchor is the clip as the protocol samples it; neighbour ``k`` moves every index by
    ``round(k · fps / rate)`` frames. Nothing is drawn, and no pixel is changed.
    """

    def __init__(self, params: NaturalShiftParams | None = None) -> None:
        self.params = params or NaturalShiftParams()

    def plans(
        self, sampler: Sampler, count: int, fps: Fraction | None
    ) -> tuple[SamplingPlan, SamplingPlan]:
        """Return the anchor's plan and the neighbour's.

        Args:
            sampler: the model's sampling.
            count: frames of the video.
            fps: frames per second.

        Raises:
            VideoSkipped: if the shift is less than half a frame, or leaves the video.
            IncompatibleComponents: if the frame rate is needed and not known.
        """
        params = self.params
        shift = self._frames(params.steps, fps)
        if shift == 0 and params.steps != 0:
            raise VideoSkipped(
                f"low frame rate: {params.steps} steps of 1/{params.rate} s are no whole frame at "
                f"{float(fps or 0):g} frames a second"
            )
        if params.boundary == "center-crop":
            margin = math.ceil(abs(self._exact(params.reach, fps)))
            if count <= 2 * margin:
                raise VideoSkipped(f"{count} frames are too few to leave {margin} at both ends")
            anchor = _moved(sampler(count - 2 * margin), margin, count)
        else:
            anchor = sampler(count)
        inside = all(0 <= index + shift < count for row in anchor.table for index in row)
        if not inside and params.boundary == "skip":
            raise VideoSkipped(f"boundary: {shift} frames further leaves the video of {count}")
        return anchor, _moved(anchor, shift, count)

    def _frames(self, steps: int, fps: Fraction | None) -> int:
        return round(self._exact(steps, fps))

    def _exact(self, steps: int, fps: Fraction | None) -> Fraction:
        if self.params.unit == "frame":
            return Fraction(steps)
        if fps is None:
            raise IncompatibleComponents(
                "attack 'natural-shift': the frame rate of this video is not known; set "
                "attack.unit = 'frame' to count frames instead of time"
            )
        return Fraction(steps) * fps / self.params.rate


def _moved(plan: SamplingPlan, shift: int, count: int) -> SamplingPlan:
    table = tuple(
        tuple(min(max(index + shift, 0), count - 1) for index in row) for row in plan.table
    )
    return SamplingPlan(table, plan.policy, count)
