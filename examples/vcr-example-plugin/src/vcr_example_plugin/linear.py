"""A classifier with nothing to train: linear in the colour averaged over space and time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import torch
from vcr_core import BaseVideoClassifier, ClipSpec

from vcr_example_plugin.colours import COLOURS

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core import WeightSpec

    from vcr_example_plugin.params import LinearParams


class Linear(BaseVideoClassifier):
    """Logits are the mean red, green and blue, minus their mean, times the gain."""

    labels = COLOURS
    clip = ClipSpec(frames=4, stride=2, policy="center", size=32)

    def __init__(self, params: LinearParams, weights: WeightSpec | None = None) -> None:
        self.matrix = params.gain * (torch.eye(3) - 1 / 3)

    def logits(self, clips: Tensor) -> Tensor:
        """Return logits `[N, 1, 3]` of clips `[N, T, 3, H, W]` in [0, 1], of any size."""
        colour = clips.mean(dim=(1, 3, 4))
        return (colour @ self.matrix.to(colour.dtype))[:, None]

    def to(self, device: torch.device | str) -> Self:
        """Move to `device`."""
        self.matrix = self.matrix.to(device)
        return self
