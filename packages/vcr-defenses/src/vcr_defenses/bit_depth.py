"""Fewer bits a channel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import InputDefense

from vcr_defenses.params.spatial import BitDepthParams

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.randomness import VideoRandom


class BitDepth(InputDefense):
    """Round to ``2^bits`` evenly spaced levels, 0 and 1 among them.

    ``y = round(x (2^b - 1)) / (2^b - 1)``: Xu, Evans, Qi, "Feature squeezing", NDSS 2018, section
    II. Deterministic; the gradient is the identity's (:meth:`surrogate`).
    """

    stochastic = False

    def __init__(self, params: BitDepthParams | None = None) -> None:
        self.params = params or BitDepthParams()

    @torch.no_grad()
    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return rounded clips, without a gradient.

        Args:
            clips: ``[B, V, T, C, H, W]``, float in [0, 1].
            random: not used.
        """
        steps = 2**self.params.bits - 1
        rounded: Tensor = (clips.clamp(0, 1) * steps).round() / steps
        return rounded
