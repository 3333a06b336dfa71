"""``tiny-x3d``: narrow stages of channel-wise 3-D convolutions in inverted bottlenecks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch.nn.functional as F
from torch import nn

from vcr_models.tiny.channelwise import ChannelWise
from vcr_models.tiny.stem import ColourAndMotion

if TYPE_CHECKING:
    from torch import Tensor


class _Stem(nn.Module):
    """A convolution within frames, then a channel-wise one over time."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.space = ColourAndMotion(outputs, step=2)
        self.time = nn.Conv2d(outputs, outputs, (5, 1), padding=(2, 0), groups=outputs, bias=False)
        self.norm = nn.BatchNorm3d(outputs)

    def forward(self, pooled: Tensor) -> Tensor:
        x = self.space(pooled)
        # As an image of frames x places, which CPUs convolve channel by channel much faster.
        x = self.time(x.flatten(3)).reshape(x.shape)
        return F.relu(self.norm(x))


class _Squeeze(nn.Module):
    """Squeeze-and-excitation: channels are scaled by what the whole clip holds."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.reduce = nn.Linear(channels, channels // 4)
        self.expand = nn.Linear(channels // 4, channels)

    def forward(self, x: Tensor) -> Tensor:
        gate: Tensor = self.expand(F.relu(self.reduce(x.mean(dim=(2, 3, 4))))).sigmoid()
        return x * gate[:, :, None, None, None]


class _Bottleneck(nn.Module):
    """Expand, convolve channel by channel, squeeze, contract; beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, *, stride: int, squeeze: bool) -> None:
        super().__init__()
        inner = 9 * outputs // 4
        steps = (1, stride, stride)
        self.expand = nn.Conv3d(inputs, inner, 1, bias=False)
        self.expand_norm = nn.BatchNorm3d(inner)
        self.depthwise = ChannelWise(inner, stride=stride)
        self.depthwise_norm = nn.BatchNorm3d(inner)
        self.squeeze = _Squeeze(inner) if squeeze else nn.Identity()
        self.contract = nn.Conv3d(inner, outputs, 1, bias=False)
        self.contract_norm = nn.BatchNorm3d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv3d(inputs, outputs, 1, steps, bias=False), nn.BatchNorm3d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.expand_norm(self.expand(x)))
        y = F.silu(self.squeeze(self.depthwise_norm(self.depthwise(y))))
        y = self.contract_norm(self.contract(y))
        return F.relu(self.shortcut(x) + y)


class TinyX3d(nn.Module):
    """Two stages of bottlenecks on every second frame, an expanding head of two linear layers.

    Reference: Feichtenhofer, "X3D: Expanding Architectures for Efficient Video Recognition",
    arXiv 2004.04730, table 1. Kept: a stem that is separate in space and time, inner width 2.25
    times the outer one, channel-wise convolutions over space and time, squeeze-and-excitation in
    every second block, swish, no stride in time anywhere, a head that widens before it is pooled.
    Reduced: channel-wise kernels are factorised (3 x 3, then 3 in time), the stem strides by 4
    instead of 2, two stages instead of four, widths 24 and 48.
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.stem = _Stem(24)
        self.block1 = _Bottleneck(24, 24, stride=1, squeeze=True)
        self.block2 = _Bottleneck(24, 48, stride=2, squeeze=False)
        self.block3 = _Bottleneck(48, 48, stride=1, squeeze=True)
        self.block4 = _Bottleneck(48, 48, stride=1, squeeze=False)
        self.widen = nn.Conv3d(48, 108, 1, bias=False)
        self.widen_norm = nn.BatchNorm3d(108)
        self.hidden = nn.Linear(108, 256, bias=False)
        self.head = nn.Linear(256, num_classes)

    def forward(self, pooled: Tensor) -> Tensor:
        """Class scores ``[N, K]`` of pooled clips ``[N, T, 3, 32, 32]`` in [0, 1]."""
        x = self.stem(pooled)
        x = self.block4(self.block3(self.block2(self.block1(x))))
        x = F.relu(self.widen_norm(self.widen(x))).mean(dim=(2, 3, 4))
        y: Tensor = self.head(F.relu(self.hidden(x)))
        return y
