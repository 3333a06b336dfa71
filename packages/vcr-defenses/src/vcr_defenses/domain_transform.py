"""Edge-aware recursive smoothing over time."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import InputDefense

from vcr_defenses.params.temporal import DomainTransformParams
from vcr_defenses.pixel_range import clamp_straight_through

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor
    from vcr_core.randomness import VideoRandom


class DomainTransform(InputDefense):
    """Recursive filter whose memory fades at changes between frames.

    Gastal, Oliveira, "Domain transform for edge-aware image and video processing", SIGGRAPH 2011,
    along time: distances ``d_t = 1 + (s_t / s_r) sum_c |I_t - I_{t-1}|`` (equation 11), a pass
    there and a pass back with ``J_t = (1 - a^d_t) I_t + a^d_t J_{t-1}`` (equation 21), ``a =
    exp(-sqrt(2) / s_i)``, and ``s_i = s_t sqrt(3) 2^(N-i) / sqrt(4^N - 1)`` in iteration ``i``
    (equation 14). All channels share their distances. A convex combination; the gradient is exact.
    """

    stochastic = False

    def __init__(self, params: DomainTransformParams | None = None) -> None:
        self.params = params or DomainTransformParams()

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return smoothed clips.

        Args:
            clips: ``[B, V, T, C, H, W]``, float in [0, 1].
            random: not used.
        """
        if clips.shape[2] == 1:
            return clips.clone()
        frames = clips.unbind(dim=2)
        scale = self.params.sigma_time / self.params.sigma_range
        distances = [
            1 + scale * (after - before).abs().sum(dim=2, keepdim=True)
            for before, after in pairwise(frames)
        ]
        total = self.params.iterations
        for i in range(1, total + 1):
            sigma = (
                self.params.sigma_time * math.sqrt(3) * 2 ** (total - i) / math.sqrt(4**total - 1)
            )
            memory = [torch.exp(d * (-math.sqrt(2) / sigma)) for d in distances]
            frames = _pass(frames, memory)
            frames = _pass(frames[::-1], memory[::-1])[::-1]
        return clamp_straight_through(torch.stack(frames, dim=2))


def _pass(frames: Sequence[Tensor], memory: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return frames after one recursive pass in their order."""
    done = [frames[0]]
    for frame, kept in zip(frames[1:], memory, strict=True):
        done.append(torch.lerp(frame, done[-1], kept))
    return tuple(done)
