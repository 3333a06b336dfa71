"""``tiny-uniformer``: convolutional relations first, attention over all tokens after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from vcr_models.tiny.channelwise import ChannelWise
from vcr_models.tiny.stem import Stem
from vcr_models.tiny.tokens import Mlp, SelfAttention, channels_first, channels_last

if TYPE_CHECKING:
    from torch import Tensor


class _Local(nn.Module):
    """Relations to neighbours with learned weights, and an MLP of 1 x 1 x 1 convolutions."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.position = ChannelWise(width)
        self.norm1 = nn.BatchNorm3d(width)
        self.value = nn.Conv3d(width, width, 1)
        self.neighbours = ChannelWise(width, 5)
        self.project = nn.Conv3d(width, width, 1)
        self.norm2 = nn.BatchNorm3d(width)
        self.expand = nn.Conv3d(width, 2 * width, 1)
        self.act = nn.GELU()
        self.contract = nn.Conv3d(2 * width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return ``[N, width, T, h, w]``."""
        x = x + self.position(x)
        x = x + self.project(self.neighbours(self.value(self.norm1(x))))
        y: Tensor = x + self.contract(self.act(self.expand(self.norm2(x))))
        return y


class _Global(nn.Module):
    """Attention of every token to every other one of the clip, and an MLP."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.position = ChannelWise(width)
        self.norm1 = nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = Mlp(width, 2 * width)

    def forward(self, x: Tensor) -> Tensor:
        """Return ``[N, width, T, h, w]``."""
        size = x.shape[2:]
        tokens = channels_last(x + self.position(x)).flatten(1, 3)
        tokens = tokens + self.attention(self.norm1(tokens))
        tokens = tokens + self.mlp(self.norm2(tokens))
        return channels_first(tokens.unflatten(1, size))


class TinyUniFormer(nn.Module):
    """One local block on 8 x 8 x 8 positions, two global ones on 8 x 4 x 4.

    Reference: Li et al., "UniFormer: Unified Transformer for Efficient Spatiotemporal
    Representation Learning", arXiv 2201.04676, section 3. Kept: dynamic position embedding before
    every block, local relation aggregators of channel-wise convolutions with reach 5 and batch norm
    in the shallow stage, global ones by attention over space and time at once in the deep stage,
    no shrinking of time between them. Reduced: channel-wise kernels are factorised, two stages
    instead of four, widths 32 and 64, an MLP of twice the width.
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.stem = Stem(24, 32, halve=False)
        self.local1 = _Local(32)
        self.down = nn.Conv3d(32, 64, (1, 2, 2), (1, 2, 2))
        self.global1 = _Global(64, 4)
        self.global2 = _Global(64, 4)
        self.norm = nn.LayerNorm(64)
        self.head = nn.Linear(64, num_classes)

    def forward(self, pooled: Tensor) -> Tensor:
        """Class scores ``[N, K]`` of pooled clips ``[N, 16, 3, 32, 32]`` in [0, 1]."""
        x = self.down(self.local1(self.stem(pooled)))
        x = channels_last(self.global2(self.global1(x)))
        y: Tensor = self.head(self.norm(x).mean(dim=(1, 2, 3)))
        return y
