"""Models with the faults that published checkpoints and wrappers had."""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor, nn

from vcr_core.protocols import BaseVideoClassifier, LabelSpace
from vcr_core.testing.toys.linear import LinearClassifier
from vcr_core.testing.toys.models import BatchNormClassifier


class _Linear(LinearClassifier):
    """Is built as the registry builds models without parameters."""

    def __init__(self, _weights: object = None) -> None:
        super().__init__()


class Probabilities(_Linear):
    """Returns a softmax."""

    def logits(self, clips: Tensor) -> Tensor:
        """Return probabilities."""
        return super().logits(clips).softmax(dim=-1)


class Flat(_Linear):
    """Forgets the views axis."""

    def logits(self, clips: Tensor) -> Tensor:
        """Return ``[N, K]``."""
        return super().logits(clips)[:, 0]


class Random(_Linear):
    """Drops out when it predicts, from the global generator."""

    def logits(self, clips: Tensor) -> Tensor:
        """Return logits with ambient noise."""
        z = super().logits(clips)
        return z + torch.randn_like(z)


class Cut(_Linear):
    """Cuts the graph, as decoding or PIL inside a model does."""

    def logits(self, clips: Tensor) -> Tensor:
        """Return logits without a graph."""
        return super().logits(clips.detach())


class Infinite(_Linear):
    """Has a gradient that is not finite."""

    def logits(self, clips: Tensor) -> Tensor:
        """Return logits through a square root at zero."""
        z = super().logits(clips)
        return z + (clips.flatten(1).mean(dim=1) * 0).sqrt()[:, None, None]


class ZeroGradient(_Linear):
    """Has a graph and a gradient of zero."""

    def logits(self, clips: Tensor) -> Tensor:
        """Return logits of rounded pixels."""
        rounded = (clips * 255).round() / 255
        return super().logits(rounded)


class BatchGradient(_Linear):
    """Passes a gradient on that depends on the number of clips."""

    def logits(self, clips: Tensor) -> Tensor:
        """Return logits of clips whose gradient is scaled."""
        if clips.requires_grad:
            clips = clips * 1
            clips.register_hook(lambda g: g * len(clips))  # type: ignore[no-untyped-call]
        return super().logits(clips)


class BatchStatistics(_Linear):
    """Normalises over the batch."""

    def logits(self, clips: Tensor) -> Tensor:
        """Return logits minus the batch's mean."""
        z = super().logits(clips)
        return z - z.mean(dim=0, keepdim=True)


class InPlace(_Linear):
    """Normalises its input in place."""

    def logits(self, clips: Tensor) -> Tensor:
        """Subtract from the input."""
        with torch.no_grad():
            clips.sub_(0.01)
        return super().logits(clips)


class FixedSize(_Linear):
    """Knows one size only."""

    def logits(self, clips: Tensor) -> Tensor:
        """Refuse other sizes."""
        if clips.shape[-1] != self.clip.size:
            raise ValueError(f"frames must be {self.clip.size} pixels wide")
        return super().logits(clips)


class OtherLabels(_Linear):
    """Carries another label list than its spec says."""

    labels = LabelSpace("toy-other", ("a", "b", "c"))


class Training(BatchNormClassifier):
    """Stays in training mode."""

    def __init__(self, _weights: object = None) -> None:
        super().__init__()
        self.network.train()


class Trainable(BaseVideoClassifier):
    """Parameters ask for gradients."""

    labels = BatchNormClassifier.labels
    clip = BatchNormClassifier.clip

    def __init__(self, _weights: object = None) -> None:
        self.network = nn.Sequential(
            nn.AdaptiveAvgPool3d((1, 2, 2)), nn.Flatten(), nn.Linear(12, 8)
        ).eval()

    def logits(self, clips: Tensor) -> Tensor:
        """Return logits of an unfrozen network."""
        return self.network(clips.transpose(1, 2))[:, None]  # type: ignore[no-any-return]

    def to(self, device: torch.device | str) -> Self:
        """Move the network."""
        self.network.to(device)
        return self
