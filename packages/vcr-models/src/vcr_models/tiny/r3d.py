"""``tiny-r3d``: a 3-D convolutional network on temporal differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch.nn.functional as F
from torch import nn

from vcr_models.tiny.front import differences

if TYPE_CHECKING:
    from torch import Tensor

Triple = tuple[int, int, int]


class _Conv3dNorm(nn.Module):
    """3-D convolution with batch normalisation."""

    def __init__(self, inputs: int, outputs: int, kernel: Triple, stride: Triple) -> None:
        super().__init__()
        padding = (kernel[0] // 2, kernel[1] // 2, kernel[2] // 2)
        self.conv = nn.Conv3d(inputs, outputs, kernel, stride, padding, bias=False)
        self.norm = nn.BatchNorm3d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.norm(self.conv(x))
        return y


class TinyR3d(nn.Module):
    """Five 3-D convolutions, one of them residual, mean over space and time, linear."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.stem = _Conv3dNorm(3, 16, (3, 5, 5), (1, 4, 4))
        self.stage1 = _Conv3dNorm(16, 40, (3, 3, 3), (2, 1, 1))
        self.stage2 = _Conv3dNorm(40, 64, (3, 3, 3), (2, 2, 2))
        self.residual = _Conv3dNorm(64, 64, (3, 3, 3), (1, 1, 1))
        self.stage3 = _Conv3dNorm(64, 96, (3, 3, 3), (2, 1, 1))
        self.head = nn.Linear(96, num_classes)

    def forward(self, pooled: Tensor) -> Tensor:
        """Class scores ``[N, K]`` of pooled clips ``[N, T, 3, 32, 32]`` in [0, 1]."""
        x = differences(pooled).transpose(1, 2)
        x = F.relu(self.stem(x))
        x = F.relu(self.stage1(x))
        x = F.relu(self.stage2(x))
        x = F.relu(x + self.residual(x))
        x = F.relu(self.stage3(x))
        y: Tensor = self.head(x.mean(dim=(2, 3, 4)))
        return y
