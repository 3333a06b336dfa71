"""Whether a video is as consistent over time as it was: along its motion, and in its motion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import Reading

from vcr_metrics.flow import SMALLEST, Flow, followed, warped
from vcr_metrics.levels import clip_length, to_levels, validate_pair
from vcr_metrics.params import WarpingErrorParams

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor
    from vcr_core.protocols import ClipInfo

KEYS = ("warp_error_delta", "tof")


class WarpingError:
    """What a perturbation does to consistency over time.

    ``warp_error_delta`` in squared levels is ``E(test) - E(reference)``. ``E(v)`` is the mean of
    ``(v[t+1](p + F) - v[t](p))²`` over pixels ``p`` that are seen in both frames, then over frames
    (Lai, Huang, Wang, Shechtman, Yumer, Yang, ECCV 2018), where ``F`` is the optical flow of the
    reference for both videos and "seen in both" is the check of :func:`vcr_metrics.flow.followed`.
    It is below 0 where the test is more consistent than the reference, as a smoothed video is.

    ``tof`` in pixels is the mean L1 distance of the flow of the reference and the flow of the test
    (Chu, Xie, Mayer, Leal-Taixé, Thuerey, ACM Transactions on Graphics 39(4), 2020): whether the
    perturbation looks like motion.

    Three flows for each pair of neighbouring frames, on the CPU.

    Raises:
        ComponentUnavailable: if the library of the flow is not installed.
    """

    def __init__(self, params: WarpingErrorParams | None = None) -> None:
        self.params = params or WarpingErrorParams()
        self.flow = Flow(self.params.flow, "warping-error")

    @torch.no_grad()
    def measure(self, reference: Tensor, test: Tensor, info: ClipInfo) -> Mapping[str, Reading]:
        """Return both numbers; ``None`` for single frames, small ones, and flow without overlap.

        Args:
            reference: ``[T, C, H, W]``, float32 in [0, 1] or uint8.
            test: the same shape, dtype and device.
            info: frames of different clips are not compared.

        Raises:
            ValueError: for videos that do not match, values outside the range, or frames that are
                not as many clips of equal length as ``info`` says.
        """
        validate_pair(reference, test)
        length = clip_length(reference, info)
        if length < 2:
            return _missing("clips of one frame")
        if min(reference.shape[-2:]) < SMALLEST:
            return _missing(f"frame smaller than {SMALLEST} px")
        errors: list[float] = []
        motions: list[float] = []
        for at in range(len(reference) - 1):
            if (at + 1) % length == 0:
                continue
            clean, other = (to_levels(video[at : at + 2]).cpu() for video in (reference, test))
            forth, back = self.flow(clean[0], clean[1]), self.flow(clean[1], clean[0])
            motions.append(float((forth - self.flow(other[0], other[1])).abs().sum(0).mean()))
            seen = followed(forth, back)
            if seen.any():
                errors.append(_error(other, forth, seen) - _error(clean, forth, seen))
        by = self.flow.by
        moved = Reading(sum(motions) / len(motions), by=by)
        if not errors:
            return {KEYS[0]: Reading(None, "no pixel is seen in two frames", by=by), KEYS[1]: moved}
        return {KEYS[0]: Reading(sum(errors) / len(errors), by=by), KEYS[1]: moved}


def _error(pair: Tensor, flow: Tensor, seen: Tensor) -> float:
    """Return the mean squared difference of ``[2, C, H, W]`` along the flow, in squared levels."""
    found, _ = warped(pair[1], flow)
    return float((found - pair[0]).square().mean(dim=0)[seen].mean())


def _missing(reason: str) -> dict[str, Reading]:
    return {key: Reading(None, reason) for key in KEYS}
