"""``tiny-slowfast``: a slow pathway with many channels beside a fast one with few."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import nn

from vcr_models.tiny.front import colour_and_differences

if TYPE_CHECKING:
    from torch import Tensor

RATIO = 4
"""The slow pathway sees every fourth frame (alpha of the paper, 8 there)."""


class _Unit(nn.Module):
    """A 3-D convolution of kernel ``(time, side, side)``, normalised and rectified."""

    def __init__(
        self, inputs: int, outputs: int, *, time: int, side: int = 3, stride: int = 1
    ) -> None:
        super().__init__()
        padding = (time // 2, side // 2, side // 2)
        kernel, strides = (time, side, side), (1, stride, stride)
        self.conv = nn.Conv3d(inputs, outputs, kernel, strides, padding, bias=False)
        self.norm = nn.BatchNorm3d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm(self.conv(x)))


class _Lateral(nn.Module):
    """From the fast pathway to the slow one: a convolution over time with stride alpha."""

    def __init__(self, fast: int) -> None:
        super().__init__()
        self.conv = nn.Conv3d(fast, 2 * fast, (5, 1, 1), (RATIO, 1, 1), (2, 0, 0), bias=False)
        self.norm = nn.BatchNorm3d(2 * fast)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm(self.conv(x)))


class TinySlowFast(nn.Module):
    """Two pathways of three stages each, joined by lateral connections.

    Reference: Feichtenhofer et al., "SlowFast Networks for Video Recognition", arXiv 1812.03982,
    section 3. Kept: two frame rates, a light fast pathway that never strides in time, time-strided
    convolutions that carry its features over to be concatenated, no kernel over time in the early
    slow stages, one linear layer on the pooled features of both. Reduced: alpha is 4 instead
    of 8, the fast pathway has a third of the channels instead of an eighth (its channels would be
    two), a stage is one plain convolution instead of bottleneck blocks.
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        slow, fast = (24, 48, 80), (8, 16, 32)
        self.fast1 = _Unit(6, fast[0], time=3, side=5, stride=4)
        self.slow1 = _Unit(6, slow[0], time=1, side=5, stride=4)
        self.lateral1 = _Lateral(fast[0])
        self.fast2 = _Unit(fast[0], fast[1], time=3)
        self.slow2 = _Unit(slow[0] + 2 * fast[0], slow[1], time=1)
        self.lateral2 = _Lateral(fast[1])
        self.fast3 = _Unit(fast[1], fast[2], time=3, stride=2)
        self.slow3 = _Unit(slow[1] + 2 * fast[1], slow[2], time=3, stride=2)
        self.head = nn.Linear(slow[2] + fast[2], num_classes)

    def forward(self, pooled: Tensor) -> Tensor:
        """Class scores ``[N, K]`` of pooled clips ``[N, T, 3, 32, 32]`` in [0, 1]."""
        clips = colour_and_differences(pooled).transpose(1, 2)
        fast = self.fast1(clips)
        slow = self.slow1(clips[:, :, ::RATIO])
        slow = torch.cat([slow, self.lateral1(fast)], dim=1)
        fast = self.fast2(fast)
        slow = self.slow2(slow)
        slow = torch.cat([slow, self.lateral2(fast)], dim=1)
        fast = self.fast3(fast)
        slow = self.slow3(slow)
        pooled_features = torch.cat([slow.mean(dim=(2, 3, 4)), fast.mean(dim=(2, 3, 4))], dim=1)
        y: Tensor = self.head(pooled_features)
        return y
