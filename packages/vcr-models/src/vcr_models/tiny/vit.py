"""``tiny-vit``: joint space-time attention over the tokens of a convolutional stem."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import nn

from vcr_models.tiny.front import colour_and_differences

if TYPE_CHECKING:
    from torch import Tensor


class _Block(nn.Module):
    """Pre-norm transformer block."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.expand = nn.Linear(width, hidden)
        self.contract = nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        n, tokens, width = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(n, tokens, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        # Written out: the fused kernel has no double backward on CPU.
        weight = (query @ key.transpose(-2, -1) * (width // self.heads) ** -0.5).softmax(dim=-1)
        mixed = (weight @ value).transpose(1, 2).reshape(n, tokens, width)
        x = x + self.project(mixed)
        y: Tensor = x + self.contract(F.gelu(self.expand(self.norm2(x))))
        return y


class TinyVit(nn.Module):
    """Three attention blocks over 8x4x4 space-time tokens of width 96."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        width = 96
        self.space1 = nn.Conv3d(6, 32, (1, 5, 5), (1, 4, 4), (0, 2, 2), bias=False)
        self.norm1 = nn.BatchNorm3d(32)
        self.time = nn.Conv3d(32, 64, (3, 1, 1), (2, 1, 1), (1, 0, 0), bias=False)
        self.norm2 = nn.BatchNorm3d(64)
        self.space2 = nn.Conv3d(64, width, (1, 3, 3), (1, 2, 2), (0, 1, 1), bias=False)
        self.norm3 = nn.BatchNorm3d(width)
        self.position = nn.Parameter(torch.zeros(1, 128, width))
        nn.init.normal_(self.position, std=0.02)
        self.blocks = nn.Sequential(*(_Block(width, 4, 3 * width) for _ in range(3)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, num_classes)

    def forward(self, pooled: Tensor) -> Tensor:
        """Class scores ``[N, K]`` of pooled clips ``[N, 16, 3, 32, 32]`` in [0, 1]."""
        x = colour_and_differences(pooled).transpose(1, 2)
        x = F.relu(self.norm1(self.space1(x)))
        x = F.relu(self.norm2(self.time(x)))
        x = self.norm3(self.space2(x))
        if x.requires_grad:
            # The tokens' gradient comes back with channels last. In evaluation mode the CPU's
            # backward pass of a batch norm reads that wrongly when there is one clip.
            x.register_hook(torch.Tensor.contiguous)
        x = self.blocks(x.flatten(2).transpose(1, 2) + self.position)
        y: Tensor = self.head(self.norm(x).mean(dim=1))
        return y
