"""A 3-D CNN with closed-form weights that tells in which direction something moves."""

from __future__ import annotations

import math
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vcr_core.protocols import BaseVideoClassifier
from vcr_core.specs import ClipSpec
from vcr_core.testing.toys.labels import DIRECTIONS, SHAPE_LABELS


class MotionEnergyNet(nn.Module):
    """3-D convolution → square → mean → linear, 504 parameters, none of them trained.

    Brightness that moves by ``v`` pixels a frame along a unit vector ``u`` obeys
    ``∂I/∂t + v·∂I/∂u = 0``. Filter ``k`` measures the left side for direction ``k``, so the class
    is the filter with the least energy.

    Args:
        speed: movement between two frames of a clip, in pixels at the network's own size.
        gain: factor on the logits.
    """

    def __init__(self, speed: float = 2.0, gain: float = 25000.0) -> None:
        super().__init__()
        self.conv = nn.Conv3d(3, len(DIRECTIONS), (2, 3, 3), bias=False)
        self.head = nn.Linear(len(DIRECTIONS), len(DIRECTIONS))
        with torch.no_grad():
            self.conv.weight.copy_(_filters(speed))
            self.head.weight.copy_(-gain * torch.eye(len(DIRECTIONS)))
            self.head.bias.zero_()
        self.requires_grad_(requires_grad=False)
        self.eval()

    def forward(self, clips: Tensor) -> Tensor:
        """Return logits ``[N, 8]`` of clips ``[N, 3, T', S, S]``."""
        energy = self.conv(clips).square().mean(dim=(2, 3, 4))
        return self.head(energy)  # type: ignore[no-any-return]


class ToyCnn(BaseVideoClassifier):
    """:class:`MotionEnergyNet` as a classifier; right on every video of ``shapes``."""

    labels = SHAPE_LABELS
    clip = ClipSpec(frames=4, stride=2, clips=2, light_clips=1, size=32)

    def __init__(self) -> None:
        self.network = MotionEnergyNet()

    def logits(self, clips: Tensor) -> Tensor:
        """Return logits ``[N, 1, 8]`` of clips ``[N, T', C, H, W]`` in [0, 1], ``T'`` ≥ 2."""
        frames = clips.transpose(1, 2)
        side = self.clip.size
        if frames.shape[-2:] != (side, side):
            size = (frames.shape[2], side, side)
            frames = F.interpolate(frames, size, mode="trilinear", align_corners=False)
        return self.network(frames)[:, None]  # type: ignore[no-any-return]

    def to(self, device: torch.device | str) -> Self:
        """Move the weights to ``device``."""
        self.network.to(device)
        return self


def _filters(speed: float) -> Tensor:
    smooth = torch.tensor([1.0, 2.0, 1.0]) / 4
    slope = torch.tensor([-1.0, 0.0, 1.0]) / 2
    along_x = torch.outer(smooth, slope)
    along_y = torch.outer(slope, smooth)
    still = torch.outer(smooth, smooth)
    in_time = torch.stack([-still, still])
    filters = []
    for angle in (math.tau * k / len(DIRECTIONS) for k in range(len(DIRECTIONS))):
        # Image rows grow downwards, directions are named as on a map.
        along = math.cos(angle) * along_x - math.sin(angle) * along_y
        filters.append(speed * torch.stack([along, along]) / 2 + in_time)
    return torch.stack(filters)[:, None].expand(-1, 3, -1, -1, -1) / 3


def make_cnn(_weights: object = None) -> ToyCnn:
    """Return the model, called as the registry calls a model without parameters."""
    return ToyCnn()
