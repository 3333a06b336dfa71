"""``tiny-swin``: attention inside three-dimensional windows that shift from block to block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

from vcr_models.tiny.stem import Stem
from vcr_models.tiny.tokens import Mlp, SelfAttention, channels_last

if TYPE_CHECKING:
    from torch import Tensor

Triple = tuple[int, int, int]

WINDOW: Triple = (4, 4, 4)


def windows(x: Tensor) -> Tensor:
    """Cut ``[N, T, h, w, C]`` into windows: ``[N, count, 64, C]``."""
    n, t, h, w, c = x.shape
    a, b, d = WINDOW
    parts = x.reshape(n, t // a, a, h // b, b, w // d, d, c)
    return parts.permute(0, 1, 3, 5, 2, 4, 6, 7).reshape(n, -1, a * b * d, c)


def joined(parts: Tensor, size: Triple) -> Tensor:
    """Undo :func:`windows`: ``[N, count, 64, C]`` to ``[N, T, h, w, C]`` with size (T, h, w)."""
    n, c = parts.shape[0], parts.shape[-1]
    (t, h, w), (a, b, d) = size, WINDOW
    cubes = parts.reshape(n, t // a, h // b, w // d, a, b, d, c)
    return cubes.permute(0, 1, 4, 2, 5, 3, 6, 7).reshape(n, t, h, w, c)


def relative_index() -> Tensor:
    """Row of the bias table for each pair of places in a window, ``[64, 64]`` int64."""
    axes = torch.meshgrid(*(torch.arange(side) for side in WINDOW), indexing="ij")
    place = torch.stack([axis.flatten() for axis in axes], dim=1)
    apart = place[:, None] - place[None] + torch.tensor(WINDOW) - 1
    sides = [2 * side - 1 for side in WINDOW]
    return (apart[..., 0] * sides[1] + apart[..., 1]) * sides[2] + apart[..., 2]


def shift_mask(size: Triple, shift: Triple) -> Tensor:
    """Scores to add in shifted windows, ``[count, 1, 64, 64]``: 0 between neighbours, else -100.

    A cyclic shift brings places together that are far apart; they must not attend to each other.
    """
    region = torch.zeros(size)
    for axis, (length, moved, side) in enumerate(zip(size, shift, WINDOW, strict=True)):
        if moved:
            line = torch.zeros(length)
            line[length - side : length - moved] = 1
            line[length - moved :] = 2
            shape = [1, 1, 1]
            shape[axis] = length
            region = region * 3 + line.reshape(shape)
    labels = windows(region[None, ..., None])[0, ..., 0]
    apart = labels[:, :, None] != labels[:, None, :]
    return (apart.float() * -100.0)[:, None]


class _Block(nn.Module):
    """Window attention and MLP, each behind a norm and beside a shortcut."""

    index: Tensor
    mask: Tensor

    def __init__(self, width: int, heads: int, size: Triple, shift: Triple) -> None:
        super().__init__()
        self.size, self.shift = size, shift
        self.norm1 = nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads)
        rows = (2 * WINDOW[0] - 1) * (2 * WINDOW[1] - 1) * (2 * WINDOW[2] - 1)
        self.bias = nn.Parameter(torch.zeros(rows, heads))
        self.norm2 = nn.LayerNorm(width)
        self.mlp = Mlp(width, 2 * width)
        self.register_buffer("index", relative_index(), persistent=False)
        self.register_buffer("mask", shift_mask(size, shift), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return ``[N, T, h, w, width]``."""
        moved = self.norm1(x).roll([-s for s in self.shift], dims=(1, 2, 3))
        bias = self.bias[self.index].permute(2, 0, 1) + self.mask
        parts = self.attention(windows(moved), bias)
        x = x + joined(parts, self.size).roll(self.shift, dims=(1, 2, 3))
        y: Tensor = x + self.mlp(self.norm2(x))
        return y


class _Merging(nn.Module):
    """Four neighbours of a frame become one token of twice the width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4 * width)
        self.reduce = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return ``[N, T, h / 2, w / 2, 2 * width]``."""
        corners = [x[:, :, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        y: Tensor = self.reduce(self.norm(torch.cat(corners, dim=-1)))
        return y


class TinySwin(nn.Module):
    """Two stages of two blocks on 8 x 8 x 8 and 8 x 4 x 4 tokens.

    Reference: Liu et al., "Video Swin Transformer", arXiv 2106.13230, section 3. Kept: attention in
    windows over time and space, every second block with windows shifted by half and masked (eq. 1),
    a relative position bias in three dimensions (eq. 2), patch merging within frames. Reduced: a
    convolutional stem, windows of 4 x 4 x 4, two stages of widths 32 and 64, a narrower MLP.
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        width, large, small = 32, (8, 8, 8), (8, 4, 4)
        self.stem = Stem(24, width, halve=False)
        self.block1 = _Block(width, 2, large, (0, 0, 0))
        self.block2 = _Block(width, 2, large, (2, 2, 2))
        self.merging = _Merging(width)
        self.block3 = _Block(2 * width, 4, small, (0, 0, 0))
        # A window as large as the map has nowhere to go, so only time is shifted.
        self.block4 = _Block(2 * width, 4, small, (2, 0, 0))
        self.norm = nn.LayerNorm(2 * width)
        self.head = nn.Linear(2 * width, num_classes)

    def forward(self, pooled: Tensor) -> Tensor:
        """Class scores ``[N, K]`` of pooled clips ``[N, 16, 3, 32, 32]`` in [0, 1]."""
        x = channels_last(self.stem(pooled))
        x = self.block2(self.block1(x))
        x = self.block4(self.block3(self.merging(x)))
        y: Tensor = self.head(self.norm(x).mean(dim=(1, 2, 3)))
        return y
