"""Mirroring of all frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import InputDefense

from vcr_defenses.draws import draw_shape
from vcr_defenses.params.spatial import FlipParams
from vcr_defenses.votes import Vote

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.protocols import ClipFn
    from vcr_core.randomness import VideoRandom


class Flip(InputDefense):
    """Horizontal flip of every frame, or the mean of both ways (``ensemble``).

    A flip turns left into right, so where classes differ by that the label changes with it.
    """

    def __init__(self, params: FlipParams | None = None) -> None:
        self.params = params or FlipParams()

    @property
    def stochastic(self) -> bool:
        """Whether these parameters make the defense random."""
        return 0 < self.params.probability < 1

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return flipped clips.

        Args:
            clips: ``[B, V, T, C, H, W]``, float in [0, 1].
            random: used with a probability below 1 only.
        """
        if not self.stochastic:
            return clips.flip(-1) if self.params.probability else clips.clone()
        draw = random.uniform(*draw_shape(self.params.per, clips)).to(clips.device)
        chosen = draw < self.params.probability
        return torch.where(
            chosen.view(*chosen.shape, *[1] * (clips.ndim - chosen.ndim)), clips.flip(-1), clips
        )

    def wrap(self, predict: ClipFn, random: VideoRandom) -> ClipFn:
        """Return ``predict`` after the flip, or the mean of its probabilities for both ways."""
        if not self.params.ensemble:
            return super().wrap(predict, random)
        return Vote(
            lambda clips: torch.stack([predict(clips), predict(self.apply(clips, random))]),
            "mean-prob",
        )
