"""``tiny-tsm``: 2-D convolutions with a temporal shift of channels before them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import nn

from vcr_models.tiny.front import colour_and_differences

if TYPE_CHECKING:
    from torch import Tensor


def temporal_shift(x: Tensor, frames: int, fraction: int = 4) -> Tensor:
    """Move a part of the channels one frame forward and as many one frame back.

    Reference: Lin et al., ICCV 2019, figure 1 (offline, bidirectional shift, zero padding).

    Args:
        x: ``[N*T, C, H, W]``, the frames of a clip next to each other.
        frames: T.
        fraction: C // fraction channels move each way.

    Returns:
        Same shape.
    """
    total, channels, height, width = x.shape
    clips = x.reshape(total // frames, frames, channels, height, width)
    moved = channels // fraction
    zero = torch.zeros_like(clips[:, :1, :moved])
    ahead = torch.cat([clips[:, 1:, :moved], zero], dim=1)
    behind = torch.cat([zero, clips[:, :-1, moved : 2 * moved]], dim=1)
    shifted = torch.cat([ahead, behind, clips[:, :, 2 * moved :]], dim=2)
    return shifted.reshape(x.shape)


class TinyTsm(nn.Module):
    """Four 2-D convolutions on colours and differences; frame scores are averaged."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(6, 32, 5, 4, 2, bias=False)
        self.norm1 = nn.BatchNorm2d(32)
        self.conv2 = nn.Conv2d(32, 64, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(64)
        self.conv3 = nn.Conv2d(64, 96, 3, 2, 1, bias=False)
        self.norm3 = nn.BatchNorm2d(96)
        self.conv4 = nn.Conv2d(96, 128, 3, 1, 1, bias=False)
        self.norm4 = nn.BatchNorm2d(128)
        self.head = nn.Linear(128, num_classes)

    def forward(self, pooled: Tensor) -> Tensor:
        """Class scores ``[N, K]`` of pooled clips ``[N, T, 3, 32, 32]`` in [0, 1]."""
        x = colour_and_differences(pooled)
        n, frames = x.shape[:2]
        x = x.flatten(0, 1)
        x = F.relu(self.norm1(self.conv1(x)))
        x = F.relu(self.norm2(self.conv2(temporal_shift(x, frames))))
        x = F.relu(self.norm3(self.conv3(temporal_shift(x, frames))))
        x = F.relu(self.norm4(self.conv4(temporal_shift(x, frames))))
        scores: Tensor = self.head(x.mean(dim=(2, 3)))
        return scores.reshape(n, frames, -1).mean(dim=1)
