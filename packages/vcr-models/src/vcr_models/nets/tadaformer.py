"""TAdaFormer: CLIP's image tower with temporally adaptive convolutions.

Huang et al., "Temporally-Adaptive Models for Efficient Video Understanding", arXiv 2308.05787,
sections 3 and 4. The kernel of a depthwise convolution is modulated frame by frame, by factors that
the neighbouring frames and the whole clip decide. Parameter names are those of the official
release.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

from vcr_models.nets.clip_blocks import EPS, Attention, Mlp, QuickGELU, with_class_token
from vcr_models.nets.memory import Recomputing

if TYPE_CHECKING:
    from torch import Tensor

EPS_ROUTE = 1e-6
HEAD_WIDTH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TAdaFormerShape:
    """Sizes of a network.

    Attributes:
        width: channels of a token.
        depth: number of layers.
        patch: side of a token in pixels; a token covers two frames.
        frames: frames of a clip, even.
        size: side of a frame in pixels.
        classes: rows of the head.
        heads: attention heads.
        double: a second adaptive convolution in front of the MLP.
    """

    width: int = 768
    depth: int = 12
    patch: int = 16
    frames: int = 16
    size: int = 224
    classes: int = 400
    heads: int = 12
    double: bool = False


class TAdaFormer(nn.Module):
    """The network; without the softmax that the official one ends with in evaluation.

    Args:
        shape: its sizes.
    """

    def __init__(self, shape: TAdaFormerShape) -> None:
        super().__init__()
        self.shape = shape
        self.backbone = Backbone(shape)
        self.head = Head(shape)

    def forward(self, clips: Tensor) -> Tensor:
        """Return logits ``[N, classes]`` of normalised clips ``[N, 3, T, H, W]``."""
        logits: Tensor = self.head(self.backbone(clips))
        return logits


class Head(nn.Module):
    """The classifier."""

    def __init__(self, shape: TAdaFormerShape) -> None:
        super().__init__()
        self.out = nn.Linear(shape.width, shape.classes)

    def forward(self, features: Tensor) -> Tensor:
        """Return ``[N, classes]``."""
        out: Tensor = self.out(features)
        return out


class Backbone(nn.Module):
    """From clips to features of their class tokens."""

    def __init__(self, shape: TAdaFormerShape) -> None:
        super().__init__()
        width, side = shape.width, shape.patch
        self.grid = shape.size // side
        self.conv1 = nn.Conv3d(
            3, width, (3, side, side), (2, side, side), padding=(1, 0, 0), bias=False
        )
        self.class_embedding = nn.Parameter(torch.zeros(width))
        self.positional_embedding = nn.Parameter(torch.zeros(1 + self.grid**2, width))
        self.ln_pre = nn.LayerNorm(width, eps=EPS)
        self.layers = Recomputing(Layer(shape) for _ in range(shape.depth))
        self.ln_post = nn.LayerNorm(width, eps=EPS)

    def forward(self, clips: Tensor) -> Tensor:
        """Return ``[N, width]`` of ``[N, 3, T, H, W]``."""
        maps = self.conv1(clips).transpose(1, 2)
        tokens = with_class_token(
            maps.flatten(0, 1), self.class_embedding, self.positional_embedding
        )
        tokens = self.ln_pre(tokens).unflatten(0, maps.shape[:2])
        tokens = self.layers(tokens)
        out: Tensor = self.ln_post(tokens[:, :, 0].mean(dim=1))
        return out


class Layer(nn.Module):
    """Adaptive convolution over places and time, attention within a frame, MLP."""

    def __init__(self, shape: TAdaFormerShape) -> None:
        super().__init__()
        self.tada = AdaptiveBranch(shape)
        self.tada2 = AdaptiveBranch(shape) if shape.double else None
        self.attn = Attention(shape.width, shape.heads)
        self.ln_1 = nn.LayerNorm(shape.width, eps=EPS)
        self.mlp = Mlp(shape.width, 4 * shape.width)
        self.ln_2 = nn.LayerNorm(shape.width, eps=EPS)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return ``[N, T, 1 + places, width]``."""
        tokens = self.tada(tokens)
        within = self.attn(self.ln_1(tokens).flatten(0, 1))
        tokens = tokens + within.unflatten(0, tokens.shape[:2])
        if self.tada2 is not None:
            tokens = self.tada2(tokens)
        out: Tensor = tokens + self.mlp(self.ln_2(tokens))
        return out


class AdaptiveBranch(nn.Module):
    """An adaptive convolution between two linear maps, added to the tokens of places."""

    def __init__(self, shape: TAdaFormerShape) -> None:
        super().__init__()
        inner = shape.width // 2
        self.grid = shape.size // shape.patch
        self.tada_pre_proj = nn.Linear(shape.width, inner)
        self.tadaconv = AdaptiveConv(inner)
        self.gelu = QuickGELU()
        self.tada_proj = nn.Linear(inner, shape.width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return ``[N, T, 1 + places, width]``; class tokens stay as they are."""
        first, places = tokens[:, :, :1], tokens[:, :, 1:]
        maps = self.tada_pre_proj(places).unflatten(2, (self.grid, self.grid))
        mixed = self.gelu(self.tadaconv(maps.permute(0, 4, 1, 2, 3)))
        change = self.tada_proj(mixed.permute(0, 2, 3, 4, 1).flatten(2, 3))
        return torch.cat((first, places + change), dim=2)


class AdaptiveConv(nn.Module):
    """A depthwise 3 x 3 convolution whose kernel and bias are scaled for every frame (eq. 3).

    Its output is normalised as it is and as its mean over three frames; both are added (eq. 9).
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, 1, channels, 1, 3, 3))
        self.bias = nn.Parameter(torch.zeros(1, 1, channels))
        self.rf_func = Route(channels)
        self.bn_a = nn.BatchNorm3d(channels)
        self.bn_b = nn.BatchNorm3d(channels)

    def forward(self, maps: Tensor) -> Tensor:
        """Return ``[N, C, T, h, w]``."""
        count, channels, frames, height, width = maps.shape
        for_kernel, for_bias = self.rf_func(maps)
        kernel = for_kernel.transpose(1, 2)[..., None, None] * self.weight[0, 0, :, 0]
        bias = for_bias.transpose(1, 2) * self.bias
        flat = maps.transpose(1, 2).reshape(1, -1, height, width)
        found = functional.conv2d(
            flat, kernel.reshape(-1, 1, 3, 3), bias.flatten(), padding=1, groups=flat.shape[1]
        )
        found = found.view(count, frames, channels, height, width).transpose(1, 2)
        around = functional.avg_pool3d(found, (3, 1, 1), stride=1, padding=(1, 0, 0))
        # A gradient with channels last would pass through the norms' backward wrongly on the CPU.
        out: Tensor = self.bn_a(found.contiguous()) + self.bn_b(around.contiguous())
        return out


def _over_time(into: int, out: int, *, bias: bool = True) -> nn.Conv3d:
    return nn.Conv3d(into, out, (3, 1, 1), padding=(1, 0, 0), bias=bias)


class Route(nn.Module):
    """The factors of each frame, from the frame, its neighbours and all frames (eqs. 5 to 8)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = channels // 2
        self.groups = inner // HEAD_WIDTH
        self.a = _over_time(channels, inner)
        self.norm = ChannelNorm(inner)
        self.gelu = QuickGELU()
        self.norm_transformer = ChannelNorm(inner)
        self.qkv_proj = nn.Conv3d(inner, 3 * inner, 1)
        self.attn_out = nn.Conv3d(inner, inner, 1)
        self.b = _over_time(inner, channels, bias=False)
        self.b_bias = _over_time(inner, channels, bias=False)

    def forward(self, maps: Tensor) -> tuple[Tensor, Tensor]:
        """Return factors of the kernel and of the bias, each ``[N, C, T]``."""
        route = self.a(maps.mean(dim=(3, 4), keepdim=True))
        route = self.gelu(self.norm(route))
        route = route + self._attend(self.norm_transformer(route))
        return self.b(route)[..., 0, 0], self.b_bias(route)[..., 0, 0]

    def _attend(self, route: Tensor) -> Tensor:
        """Attention over frames; heads take every ``groups``-th channel and return a block."""
        mixed = self.qkv_proj(route)[..., 0, 0]
        q, k, v = mixed.unflatten(1, (3, HEAD_WIDTH, self.groups)).permute(1, 0, 3, 4, 2)
        # The official scale is that of the whole width, not of a head.
        found = functional.scaled_dot_product_attention(q, k, v, scale=route.shape[1] ** -0.5)
        together = found.transpose(2, 3).flatten(1, 2)
        out: Tensor = self.attn_out(together[..., None, None])
        return out


class ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels of ``[N, C, T, h, w]``."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, eps=EPS_ROUTE)

    def forward(self, maps: Tensor) -> Tensor:
        """Return a tensor of the same shape."""
        return super().forward(maps.movedim(1, -1)).movedim(-1, 1)
