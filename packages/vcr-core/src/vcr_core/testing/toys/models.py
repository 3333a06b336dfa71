"""Sound models that sit at the edges of what an attack can meet."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor, nn

from vcr_core.protocols import BaseVideoClassifier, VideoClassifier
from vcr_core.specs import ClipSpec
from vcr_core.testing.toys.labels import SHAPE_LABELS
from vcr_core.testing.toys.linear import LINEAR_LABELS


class ConstantClassifier(BaseVideoClassifier):
    """Always class 0, with a graph and a gradient of zero."""

    labels = LINEAR_LABELS
    clip = ClipSpec(frames=4, size=32)

    def logits(self, clips: Tensor) -> Tensor:
        """Return the same logits ``[N, 1, 4]`` for every clip."""
        zero = clips.flatten(1).mean(dim=1) * 0
        fixed = clips.new_tensor([3.0, 0.0, 0.0, 0.0])
        return (zero[:, None] + fixed)[:, None]

    def to(self, device: torch.device | str) -> Self:
        """Return the model; it holds nothing."""
        return self


class Saturated(BaseVideoClassifier):
    """Another model with its logits times 10 000: probabilities underflow, their logs do not."""

    def __init__(self, model: VideoClassifier) -> None:
        self.model = model
        self.labels = model.labels
        self.clip = model.clip

    def logits(self, clips: Tensor) -> Tensor:
        """Return the other model's logits, 10 000 times as large."""
        return self.model.logits(clips) * 1e4

    def to(self, device: torch.device | str) -> Self:
        """Move the other model."""
        self.model = self.model.to(device)
        return self


class BatchNormClassifier(BaseVideoClassifier):
    """A network with batch normalisation, frozen as it should be."""

    labels = SHAPE_LABELS
    clip = ClipSpec(frames=4, size=32)

    def __init__(self) -> None:
        self.network = nn.Sequential(
            nn.BatchNorm3d(3), nn.AdaptiveAvgPool3d((1, 2, 2)), nn.Flatten(), nn.Linear(12, 8)
        )
        with torch.no_grad():
            for index, parameter in enumerate(self.network.parameters()):
                values = torch.linspace(-1.0, 1.0 + index, parameter.numel())
                parameter.copy_(values.cos().view(parameter.shape))
        self.network.requires_grad_(requires_grad=False).eval()

    def logits(self, clips: Tensor) -> Tensor:
        """Return logits ``[N, 1, 8]`` of clips ``[N, T', C, H, W]``."""
        return self.network(clips.transpose(1, 2))[:, None]  # type: ignore[no-any-return]

    def to(self, device: torch.device | str) -> Self:
        """Move the network."""
        self.network.to(device)
        return self


def make_batch_norm(_weights: object = None) -> BatchNormClassifier:
    """Return the model, called as the registry calls a model without parameters."""
    return BatchNormClassifier()
