"""``tiny-timesformer``: attention over time and attention within a frame in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from vcr_models.tiny.stem import Stem
from vcr_models.tiny.tokens import Mlp, SelfAttention, channels_last

if TYPE_CHECKING:
    from torch import Tensor


class _Divided(nn.Module):
    """Temporal attention, spatial attention, MLP, each behind a norm and beside a shortcut."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.time_norm = nn.LayerNorm(width)
        self.time = SelfAttention(width, heads)
        self.space_norm = nn.LayerNorm(width)
        self.space = SelfAttention(width, heads)
        self.mlp_norm = nn.LayerNorm(width)
        self.mlp = Mlp(width, 2 * width)

    def forward(self, x: Tensor) -> Tensor:
        """Return ``[N, T, places, width]``."""
        over_time = self.time(self.time_norm(x).transpose(1, 2)).transpose(1, 2)
        x = x + over_time
        x = x + self.space(self.space_norm(x))
        y: Tensor = x + self.mlp(self.mlp_norm(x))
        return y


class TinyTimeSformer(nn.Module):
    """Three blocks of divided attention over 8 x 16 tokens of width 64.

    Reference: Bertasius et al., "Is Space-Time Attention All You Need for Video Understanding?",
    arXiv 2102.05095, section 3 ("T+S"). Kept: a token attends to its place in all frames (eq. 11),
    then to all places of its frame, with separate weights; learned positions of places and of
    frames are added. Reduced: a convolutional stem in place of 16 x 16 patches, the mean of
    the tokens in place of a class token, 3 blocks of width 64 instead of 12 of 768.
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        width = 64
        self.stem = Stem(24, width, halve=True)
        self.frame_position = nn.Parameter(torch.zeros(8, 1, width))
        self.place_position = nn.Parameter(torch.zeros(16, width))
        nn.init.normal_(self.frame_position, std=0.02)
        nn.init.normal_(self.place_position, std=0.02)
        self.block1 = _Divided(width, 4)
        self.block2 = _Divided(width, 4)
        self.block3 = _Divided(width, 4)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, num_classes)

    def forward(self, pooled: Tensor) -> Tensor:
        """Class scores ``[N, K]`` of pooled clips ``[N, 16, 3, 32, 32]`` in [0, 1]."""
        x = channels_last(self.stem(pooled)).flatten(2, 3)
        x = x + self.frame_position + self.place_position
        x = self.block3(self.block2(self.block1(x)))
        y: Tensor = self.head(self.norm(x).mean(dim=(1, 2)))
        return y
