"""``tiny-r2plus1d``: spatial and temporal convolutions in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch.nn.functional as F
from torch import nn

from vcr_models.tiny.front import colour_and_differences

if TYPE_CHECKING:
    from torch import Tensor


class _Factorised(nn.Module):
    """A spatial convolution followed by a temporal one, each normalised and rectified."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        kernel: int = 3,
        stride: int = 1,
        time_stride: int = 1,
    ) -> None:
        super().__init__()
        half = kernel // 2
        self.space = nn.Conv3d(
            inputs, outputs, (1, kernel, kernel), (1, stride, stride), (0, half, half), bias=False
        )
        self.space_norm = nn.BatchNorm3d(outputs)
        self.time = nn.Conv3d(
            outputs, outputs, (3, 1, 1), (time_stride, 1, 1), (1, 0, 0), bias=False
        )
        self.time_norm = nn.BatchNorm3d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.space_norm(self.space(x)))
        return F.relu(self.time_norm(self.time(x)))


class TinyR2plus1d(nn.Module):
    """Four (2+1)-D blocks on colours and differences, mean over space and time, linear."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.stem = _Factorised(6, 32, kernel=5, stride=4)
        self.stage1 = _Factorised(32, 48, time_stride=2)
        self.stage2 = _Factorised(48, 80, stride=2, time_stride=2)
        self.stage3 = _Factorised(80, 112, time_stride=2)
        self.head = nn.Linear(112, num_classes)

    def forward(self, pooled: Tensor) -> Tensor:
        """Class scores ``[N, K]`` of pooled clips ``[N, T, 3, 32, 32]`` in [0, 1]."""
        x = colour_and_differences(pooled).transpose(1, 2)
        x = self.stage3(self.stage2(self.stage1(self.stem(x))))
        y: Tensor = self.head(x.mean(dim=(2, 3, 4)))
        return y
