"""The plain video transformer of VideoMAE, VideoMAE V2, AMD, InternVideo and UMT.

Tong et al., "VideoMAE", arXiv 2203.12602, section 3; Wang et al., "VideoMAE V2", arXiv 2303.16727;
Wang et al., "InternVideo", arXiv 2212.03191; Li et al., "Unmasked Teacher", arXiv 2303.16058. All
fine-tune the same network: cubes of pixels become tokens, every token attends to every other, and
the mean of the last tokens is classified. Parameter names are those of the official releases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from vcr_models.nets.memory import Recomputing

if TYPE_CHECKING:
    from torch import Tensor

EPS = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoViTShape:
    """What tells one network of the family from another.

    Attributes:
        width: channels of a token.
        depth: number of blocks.
        heads: attention heads.
        patch: side of a token in pixels.
        mlp: inner channels of the MLP.
        frames: frames of a clip.
        tubelet: frames of a token.
        size: side of a frame in pixels.
        classes: rows of the head.
        table: ``fixed`` sine positions outside the state, or ``learned`` ones in it.
        pooled: classify the mean token behind ``fc_norm``; else the first one behind ``norm``.
        layer_scale: whether residuals are scaled by ``gamma_1`` and ``gamma_2``.
        cosine: cosine attention with a learned temperature a head (VideoMAE V2).
    """

    width: int
    depth: int
    heads: int
    patch: int = 16
    mlp: int
    frames: int = 16
    tubelet: int = 2
    size: int = 224
    classes: int = 400
    table: str = "fixed"
    pooled: bool = True
    layer_scale: bool = False
    cosine: bool = False

    @property
    def grid(self) -> tuple[int, int, int]:
        """Tokens along time, height and width."""
        side = self.size // self.patch
        return self.frames // self.tubelet, side, side

    @property
    def tokens(self) -> int:
        """Number of tokens of a clip."""
        return math.prod(self.grid)


def sine_table(positions: int, width: int) -> Tensor:
    """Return sine positions ``[1, positions, width]`` float32.

    Angle of token ``n`` in channel ``j``: ``n / 10000^(2 floor(j/2) / width)``; even channels hold
    its sine, odd ones its cosine (Vaswani et al., arXiv 1706.03762, section 3.5).
    """
    channel = np.arange(width)
    angle = np.arange(positions)[:, None] / np.power(10000.0, 2 * (channel // 2) / width)
    table = np.where(channel % 2 == 0, np.sin(angle), np.cos(angle))
    return torch.from_numpy(table.astype(np.float32))[None]


class VideoViT(nn.Module):
    """The network.

    Args:
        shape: its sizes.

    Example:
        >>> small = VideoViTShape(width=24, depth=1, heads=2, mlp=48, frames=4, size=32, classes=5)
        >>> tuple(VideoViT(small).eval()(torch.zeros(2, 3, 4, 32, 32)).shape)
        (2, 5)
    """

    pos_embed: Tensor

    def __init__(self, shape: VideoViTShape) -> None:
        super().__init__()
        self.shape = shape
        if shape.table == "learned":
            self.pos_embed = nn.Parameter(torch.zeros(1, shape.tokens, shape.width))
        else:
            table = sine_table(shape.tokens, shape.width)
            self.register_buffer("pos_embed", table, persistent=False)
        self.patch_embed = Tubelets(shape)
        self.blocks = Recomputing(Block(shape) for _ in range(shape.depth))
        name = "fc_norm" if shape.pooled else "norm"
        self.add_module(name, nn.LayerNorm(shape.width, eps=EPS))
        self.head = nn.Linear(shape.width, shape.classes)

    def forward(self, clips: Tensor) -> Tensor:
        """Return logits ``[N, classes]`` of normalised clips ``[N, 3, T, H, W]``."""
        tokens = self.patch_embed(clips) + self.pos_embed
        tokens = self.blocks(tokens)
        if self.shape.pooled:
            out: Tensor = self.head(self.get_submodule("fc_norm")(tokens.mean(dim=1)))
            return out
        out = self.head(self.get_submodule("norm")(tokens)[:, 0])
        return out


class Tubelets(nn.Module):
    """Cubes of pixels as tokens, in the order time, row, column."""

    def __init__(self, shape: VideoViTShape) -> None:
        super().__init__()
        cube = (shape.tubelet, shape.patch, shape.patch)
        self.proj = nn.Conv3d(3, shape.width, cube, cube)

    def forward(self, clips: Tensor) -> Tensor:
        """Return ``[N, tokens, width]`` of ``[N, 3, T, H, W]``."""
        out: Tensor = self.proj(clips).flatten(2).transpose(1, 2)
        return out


class Block(nn.Module):
    """Attention and MLP, each behind a norm and beside a shortcut."""

    def __init__(self, shape: VideoViTShape) -> None:
        super().__init__()
        width = shape.width
        self.norm1 = nn.LayerNorm(width, eps=EPS)
        self.attn = CosineAttention(shape) if shape.cosine else Attention(shape)
        self.norm2 = nn.LayerNorm(width, eps=EPS)
        self.mlp = Mlp(width, shape.mlp)
        self.gamma_1 = nn.Parameter(torch.ones(width)) if shape.layer_scale else None
        self.gamma_2 = nn.Parameter(torch.ones(width)) if shape.layer_scale else None

    def forward(self, tokens: Tensor) -> Tensor:
        """Return ``[N, tokens, width]``."""
        attended = self.attn(self.norm1(tokens))
        tokens = tokens + (attended if self.gamma_1 is None else self.gamma_1 * attended)
        mixed = self.mlp(self.norm2(tokens))
        out: Tensor = tokens + (mixed if self.gamma_2 is None else self.gamma_2 * mixed)
        return out


class Attention(nn.Module):
    """Attention of every token to every token; keys have no bias."""

    def __init__(self, shape: VideoViTShape) -> None:
        super().__init__()
        width = shape.width
        self.heads = shape.heads
        self.q_bias = nn.Parameter(torch.zeros(width))
        self.v_bias = nn.Parameter(torch.zeros(width))
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.proj = nn.Linear(width, width)

    def split(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values ``[N, heads, tokens, width / heads]``."""
        bias = torch.cat((self.q_bias, torch.zeros_like(self.v_bias), self.v_bias))
        mixed = functional.linear(tokens, self.qkv.weight, bias)
        q, k, v = mixed.unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)  # type: ignore[no-untyped-call]
        return q, k, v

    def forward(self, tokens: Tensor) -> Tensor:
        """Return ``[N, tokens, width]``."""
        found = functional.scaled_dot_product_attention(*self.split(tokens))
        out: Tensor = self.proj(found.transpose(1, 2).flatten(2))
        return out


class CosineAttention(Attention):
    """Attention by cosine, with a temperature that each head learns (arXiv 2111.09883, eq. 2)."""

    def __init__(self, shape: VideoViTShape) -> None:
        super().__init__(shape)
        self.scale = nn.Parameter(torch.zeros(shape.heads, 1, 1))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return ``[N, tokens, width]``."""
        q, k, v = self.split(tokens)
        warmth = self.scale.clamp(max=4.6052).exp()
        found = functional.scaled_dot_product_attention(
            functional.normalize(q, dim=-1) * warmth, functional.normalize(k, dim=-1), v, scale=1.0
        )
        out: Tensor = self.proj(found.transpose(1, 2).flatten(2))
        return out


class Mlp(nn.Module):
    """Two linear maps with an exact GELU between them."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, inner)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(inner, width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return ``[N, tokens, width]``."""
        out: Tensor = self.fc2(self.act(self.fc1(tokens)))
        return out


def resized_table(table: Tensor, old: tuple[int, int, int], new: tuple[int, int, int]) -> Tensor:
    """Return a table of positions for another grid: bicubic over a frame, then linear over time.

    Args:
        table: ``[1, positions, width]``.
        old: grid of ``table`` along time, height and width.
        new: wanted grid.
    """
    width = table.shape[-1]
    frames = table.reshape(old[0], old[1], old[2], width).permute(0, 3, 1, 2)
    if old[1:] != new[1:]:
        frames = functional.interpolate(frames, new[1:], mode="bicubic", align_corners=False)
    if old[0] != new[0]:
        line = frames.permute(2, 3, 1, 0).flatten(0, 1)
        line = functional.interpolate(line, new[0], mode="linear", align_corners=False)
        frames = line.unflatten(0, new[1:]).permute(3, 2, 0, 1)  # type: ignore[no-untyped-call]
    return frames.permute(0, 2, 3, 1).reshape(1, -1, width)
