"""InternVideo2, stage 1, as an action classifier.

Wang et al., "InternVideo2: Scaling Foundation Models for Multimodal Video Understanding",
arXiv 2403.15377, section 3.1. A joint space-time transformer whose blocks are normalised by root
mean square, with queries and keys normalised over the whole width and residuals scaled channel by
channel; an attention pool condenses the tokens. Parameter names are those of the official release.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch
from torch import nn
from torch.nn import functional

from vcr_models.nets.memory import Recomputing

if TYPE_CHECKING:
    from torch import Tensor

EPS_RMS = 1e-6
EPS_POOL = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class InternVideo2Shape:
    """Sizes of a network.

    Attributes:
        width: channels of a token.
        depth: number of blocks.
        heads: attention heads.
        patch: side of a token in pixels; a token covers one frame.
        mlp: inner channels of the MLP.
        frames: frames of a clip.
        size: side of a frame in pixels.
        classes: rows of the head.
        pool_heads: heads of the attention pool.
        pooled: channels behind the pool.
        separate_positions: positions of frame, place and class token as tables of their own.
        gelu: ``tanh`` is what the fused kernels of the official evaluation compute, ``none`` what
            its plain path does.
    """

    width: int
    depth: int
    heads: int
    patch: int = 14
    mlp: int
    frames: int = 8
    size: int = 224
    classes: int = 400
    pool_heads: int = 16
    pooled: int = 768
    separate_positions: bool = False
    gelu: Literal["none", "tanh"] = "tanh"


class InternVideo2(nn.Module):
    """The network.

    Args:
        shape: its sizes.
    """

    def __init__(self, shape: InternVideo2Shape) -> None:
        super().__init__()
        self.shape = shape
        places = (shape.size // shape.patch) ** 2
        width = shape.width
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        if shape.separate_positions:
            self.pos_embed_spatial = nn.Parameter(torch.zeros(1, places, width))
            self.pos_embed_temporal = nn.Parameter(torch.zeros(1, shape.frames, width))
            self.pos_embed_cls = nn.Parameter(torch.zeros(1, 1, width))
        else:
            self.pos_embed = nn.Parameter(torch.zeros(1, 1 + places * shape.frames, width))
        self.patch_embed = FramePatches(shape)
        self.blocks = Recomputing(Block(shape) for _ in range(shape.depth))
        self.clip_projector = AttentionPool(shape)
        self.fc_norm = nn.LayerNorm(shape.pooled, eps=EPS_POOL)
        self.head = nn.Linear(shape.pooled, shape.classes)

    def positions(self) -> Tensor:
        """Return positions ``[1, 1 + tokens, width]``, the class token's first."""
        if not self.shape.separate_positions:
            return self.pos_embed
        space, time = self.pos_embed_spatial[:, None], self.pos_embed_temporal[:, :, None]
        return torch.cat((self.pos_embed_cls, (space + time).flatten(1, 2)), dim=1)

    def forward(self, clips: Tensor) -> Tensor:
        """Return logits ``[N, classes]`` of normalised clips ``[N, 3, T, H, W]``."""
        tokens = self.patch_embed(clips).flatten(1, 2)
        first = self.cls_token.expand(len(tokens), -1, -1)
        tokens = torch.cat((first, tokens), dim=1) + self.positions()
        pooled = self.clip_projector(self.blocks(tokens))
        out: Tensor = self.head(self.fc_norm(pooled))
        return out


class FramePatches(nn.Module):
    """Squares of a frame as tokens."""

    def __init__(self, shape: InternVideo2Shape) -> None:
        super().__init__()
        cube = (1, shape.patch, shape.patch)
        self.proj = nn.Conv3d(3, shape.width, cube, cube)

    def forward(self, clips: Tensor) -> Tensor:
        """Return ``[N, T, places, width]`` of ``[N, 3, T, H, W]``."""
        out: Tensor = self.proj(clips).flatten(3).permute(0, 2, 3, 1)
        return out


class RootMeanSquareNorm(nn.Module):
    """``x / sqrt(mean(x^2) + eps)`` times a weight, computed in float32 at least."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = EPS_RMS

    def forward(self, tokens: Tensor) -> Tensor:
        """Return ``[N, tokens, width]``."""
        exact = tokens.to(torch.promote_types(tokens.dtype, torch.float32))
        scaled = exact * torch.rsqrt(exact.square().mean(-1, keepdim=True) + self.eps)
        return self.weight * scaled.to(tokens.dtype)


class LayerScale(nn.Module):
    """A factor a channel, applied in float32 at least."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(width))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return ``[N, tokens, width]``."""
        exact = tokens.to(torch.promote_types(tokens.dtype, torch.float32))
        return (exact * self.gamma).to(tokens.dtype)


class Block(nn.Module):
    """Attention and MLP, each behind a norm, scaled, and beside a shortcut."""

    def __init__(self, shape: InternVideo2Shape) -> None:
        super().__init__()
        self.norm1 = RootMeanSquareNorm(shape.width)
        self.attn = Attention(shape)
        self.ls1 = LayerScale(shape.width)
        self.norm2 = RootMeanSquareNorm(shape.width)
        self.mlp = Mlp(shape)
        self.ls2 = LayerScale(shape.width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return ``[N, tokens, width]``."""
        tokens = tokens + self.ls1(self.attn(self.norm1(tokens)))
        out: Tensor = tokens + self.ls2(self.mlp(self.norm2(tokens)))
        return out


class Attention(nn.Module):
    """Attention; queries and keys are normalised before they are split into heads."""

    def __init__(self, shape: InternVideo2Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.qkv = nn.Linear(shape.width, 3 * shape.width, bias=False)
        self.q_norm = RootMeanSquareNorm(shape.width)
        self.k_norm = RootMeanSquareNorm(shape.width)
        self.proj = nn.Linear(shape.width, shape.width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return ``[N, tokens, width]``."""
        q, k, v = self.qkv(tokens).chunk(3, dim=-1)
        q, k, v = (_heads(part, self.heads) for part in (self.q_norm(q), self.k_norm(k), v))
        found = functional.scaled_dot_product_attention(q, k, v)
        out: Tensor = self.proj(found.transpose(1, 2).flatten(2))
        return out


class Mlp(nn.Module):
    """Two linear maps with a GELU between them."""

    def __init__(self, shape: InternVideo2Shape) -> None:
        super().__init__()
        self.fc1 = nn.Linear(shape.width, shape.mlp)
        self.act = nn.GELU(approximate=shape.gelu)
        self.fc2 = nn.Linear(shape.mlp, shape.width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return ``[N, tokens, width]``."""
        out: Tensor = self.fc2(self.act(self.fc1(tokens)))
        return out


class AttentionPool(nn.Module):
    """One token from all: the mean token asks the others."""

    def __init__(self, shape: InternVideo2Shape) -> None:
        super().__init__()
        self.norm1_q = nn.LayerNorm(shape.width, eps=EPS_POOL)
        self.norm1_k = nn.LayerNorm(shape.width, eps=EPS_POOL)
        self.norm1_v = nn.LayerNorm(shape.width, eps=EPS_POOL)
        self.cross_attn = CrossAttention(shape)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return ``[N, pooled]`` of ``[N, tokens, width]``."""
        asking = self.norm1_q(tokens.mean(dim=1, keepdim=True))
        found: Tensor = self.cross_attn(asking, self.norm1_k(tokens), self.norm1_v(tokens))
        return found.squeeze(1)


class CrossAttention(nn.Module):
    """Attention of some tokens to others, biases apart from the maps."""

    def __init__(self, shape: InternVideo2Shape) -> None:
        super().__init__()
        width = shape.width
        self.heads = shape.pool_heads
        self.q_bias = nn.Parameter(torch.zeros(width))
        self.k_bias = nn.Parameter(torch.zeros(width))
        self.v_bias = nn.Parameter(torch.zeros(width))
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, width, bias=False)
        self.v = nn.Linear(width, width, bias=False)
        self.proj = nn.Linear(width, shape.pooled)

    def forward(self, asking: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Return ``[N, asking, pooled]``."""
        q = functional.linear(asking, self.q.weight, self.q_bias)
        k = functional.linear(keys, self.k.weight, self.k_bias)
        v = functional.linear(values, self.v.weight, self.v_bias)
        q, k, v = (_heads(part, self.heads) for part in (q, k, v))
        found = functional.scaled_dot_product_attention(q, k, v)
        out: Tensor = self.proj(found.transpose(1, 2).flatten(2))
        return out


def _heads(tokens: Tensor, heads: int) -> Tensor:
    out: Tensor = tokens.unflatten(-1, (heads, -1)).transpose(1, 2)  # type: ignore[no-untyped-call]
    return out


def resized_positions(table: Tensor, frames: int, places: int) -> Tensor:
    """Return positions for another number of frames: linear over time, the class token's as it is.

    Args:
        table: ``[1, 1 + old * places, width]``.
        frames: wanted number of frames.
        places: tokens of a frame.
    """
    first, rest = table[:, :1], table[:, 1:]
    line = rest.unflatten(1, (-1, places)).permute(2, 3, 1, 0).flatten(2)  # type: ignore[no-untyped-call]
    line = functional.interpolate(line, frames, mode="linear", align_corners=False)
    return torch.cat((first, line.permute(2, 0, 1).flatten(0, 1)[None]), dim=1)
