"""ONE-PEACE's vision branch with the adapters of its video classifier.

Wang et al., "ONE-PEACE: Exploring One General Representation Model Toward Unlimited Modalities",
arXiv 2305.11172, section 3.1; adapters over time and space as in Yang et al., "AIM: Adapting Image
Models for Efficient Video Action Recognition", arXiv 2302.03024, section 3. Parameter names are
those of the official release.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import torch
from torch import nn
from torch.nn import functional

from vcr_models.nets.class_head import ClassHead
from vcr_models.nets.memory import Recomputing

if TYPE_CHECKING:
    from torch import Tensor

EPS: Final = 1e-5
STRIDE: Final = 16
BOTTLENECK: Final = 4
ADAPTER_SCALE: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class OnePeaceShape:
    """Sizes of a network.

    Attributes:
        width: channels of a token.
        depth: number of layers.
        heads: attention heads.
        inner: inner channels of the feed-forward part.
        frames: frames of a clip.
        grid: places along a side of a frame; a place is 16 pixels wide.
        classes: rows of the head.
        bias_per_layer: a table of relative positions in every layer instead of one for all.
        adapters: adapters of the temporal pass: 1 behind it, or 2, one in front as well.
    """

    width: int = 1536
    depth: int = 40
    heads: int = 24
    inner: int = 6144
    frames: int = 16
    grid: int = 16
    classes: int = 400
    bias_per_layer: bool = False
    adapters: int = 1


class OnePeace(nn.Module):
    """The network.

    Args:
        shape: its sizes.
    """

    def __init__(self, shape: OnePeaceShape) -> None:
        super().__init__()
        self.shape = shape
        self.backbone = Backbone(shape)
        self.cls_head = ClassHead(shape.width, shape.classes)

    def forward(self, clips: Tensor) -> Tensor:
        """Return logits ``[N, classes]`` of normalised clips ``[N, 3, T, H, W]``."""
        logits: Tensor = self.cls_head(self.backbone(clips).mean(dim=1))
        return logits


class Backbone(nn.Module):
    """From clips to the class tokens of their frames."""

    def __init__(self, shape: OnePeaceShape) -> None:
        super().__init__()
        self.image_adapter = ImageAdapter(shape)
        self.encoder = Encoder(shape)

    def forward(self, clips: Tensor) -> Tensor:
        """Return ``[N, T, width]`` of ``[N, 3, T, H, W]``."""
        tokens, bias = self.image_adapter(clips.transpose(1, 2))
        found: Tensor = self.encoder(tokens, bias)
        return found[:, :, 0]


class ImageAdapter(nn.Module):
    """Frames as tokens, with positions in the frame, in time, and between places."""

    def __init__(self, shape: OnePeaceShape) -> None:
        super().__init__()
        width, inner = shape.width, shape.width // 4
        self.cls_embedding = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1 + shape.grid**2, width))
        self.temporal_embedding = nn.Parameter(torch.zeros(1, shape.frames, width))
        self.embed_images = nn.Sequential(
            nn.Conv2d(3, inner, 4, 4),
            ChannelNorm(inner),
            nn.GELU(),
            nn.Conv2d(inner, inner, 2, 2),
            ChannelNorm(inner),
            nn.GELU(),
            nn.Conv2d(inner, width, 2, 2),
        )
        self.shared = not shape.bias_per_layer
        if self.shared:
            add_relative_positions(self, shape)

    def forward(self, frames: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return tokens ``[N, T, 1 + places, width]`` and the bias of the spatial attention."""
        maps = self.embed_images(frames.flatten(0, 1)).flatten(2).transpose(1, 2)
        first = self.cls_embedding.expand(len(maps), -1, -1)
        tokens = torch.cat((first, maps), dim=1) + self.pos_embed
        tokens = tokens.unflatten(0, frames.shape[:2]) + self.temporal_embedding[:, :, None]  # type: ignore[no-untyped-call]
        return tokens, relative_bias(self) if self.shared else None


class ChannelNorm(nn.Module):
    """Layer norm over the channels of ``[N, C, h, w]``."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layer_norm = nn.LayerNorm(channels, eps=EPS)

    def forward(self, maps: Tensor) -> Tensor:
        """Return a tensor of the same shape."""
        out: Tensor = self.layer_norm(maps.movedim(1, -1)).movedim(-1, 1)
        return out


def relative_buckets(grid: int) -> Tensor:
    """Return ``[1 + places, 1 + places]`` int64: the row of the bias table by query and key.

    Places: by the difference of rows and columns. The last three rows are those of the class token
    that asks, of places that ask it, and of the class token with itself.
    """
    rows, columns = torch.meshgrid(torch.arange(grid), torch.arange(grid), indexing="ij")
    down = rows.flatten()[:, None] - rows.flatten() + grid - 1
    right = columns.flatten()[:, None] - columns.flatten() + grid - 1
    last = (2 * grid - 1) ** 2
    found = torch.full((1 + grid**2, 1 + grid**2), last)
    found[1:, 1:] = down * (2 * grid - 1) + right
    found[1:, 0] = last + 1
    found[0, 0] = last + 2
    return found


def add_relative_positions(module: nn.Module, shape: OnePeaceShape) -> None:
    """Give a module the table of relative positions and the rows that places look up."""
    with torch.device("cpu"):
        buckets = relative_buckets(shape.grid)
    module.register_buffer("rp_bucket", buckets)
    module.rel_pos_table = nn.Embedding((2 * shape.grid - 1) ** 2 + 3, shape.heads)


def relative_bias(module: nn.Module) -> Tensor:
    """Return ``[heads, 1 + places, 1 + places]``, what is added to scores of the attention."""
    table = module.get_submodule("rel_pos_table")
    found: Tensor = table(module.get_buffer("rp_bucket"))
    return found.permute(2, 0, 1)


class Encoder(nn.Module):
    """The layers and the last norm."""

    def __init__(self, shape: OnePeaceShape) -> None:
        super().__init__()
        self.layers = Recomputing(Layer(shape) for _ in range(shape.depth))
        self.image_layer_norm = nn.LayerNorm(shape.width, eps=EPS)

    def forward(self, tokens: Tensor, bias: Tensor | None) -> Tensor:
        """Return ``[N, T, 1 + places, width]``."""
        for layer in self.layers:
            tokens = self.layers.step(_With(layer, bias), tokens)
        out: Tensor = self.image_layer_norm(tokens)
        return out


class _With(nn.Module):
    """A layer with the bias that all share."""

    def __init__(self, layer: nn.Module, bias: Tensor | None) -> None:
        super().__init__()
        self.layer, self.bias = layer, bias

    def forward(self, tokens: Tensor) -> Tensor:
        found: Tensor = self.layer(tokens, self.bias)
        return found


class Layer(nn.Module):
    """Attention over time, then over places with the same weights, then the feed-forward part.

    The temporal pass reaches the tokens through the input of the spatial one only.
    """

    def __init__(self, shape: OnePeaceShape) -> None:
        super().__init__()
        width = shape.width
        self.gamma_1 = nn.Parameter(torch.ones(width))
        self.gamma_2 = nn.Parameter(torch.ones(width))
        self.self_attn = SelfAttention(width, shape.heads)
        self.self_attn_layer_norm = nn.LayerNorm(width, eps=EPS)
        self.image_ffn = nn.Sequential(
            Gated(width, shape.inner),
            nn.Dropout(0.0),
            nn.LayerNorm(shape.inner, eps=EPS),
            nn.Linear(shape.inner, width),
        )
        self.final_layer_norm = nn.LayerNorm(width, eps=EPS)
        self.own_bias = shape.bias_per_layer
        if self.own_bias:
            add_relative_positions(self, shape)
        self.MLP_Adapter = BottleneckAdapter(width)
        self.S_Adapter = BottleneckAdapter(width, skip=True)
        self.T_Adapter = BottleneckAdapter(width)
        self.T_Adapter_in = BottleneckAdapter(width, skip=True) if shape.adapters == 2 else None

    def forward(self, tokens: Tensor, bias: Tensor | None) -> Tensor:
        """Return ``[N, T, 1 + places, width]``."""
        if self.own_bias:
            bias = relative_bias(self)
        across = self.self_attn_layer_norm(tokens).transpose(1, 2)
        if self.T_Adapter_in is not None:
            across = self.T_Adapter_in(across)
        changed = tokens + self.T_Adapter(self.self_attn(across, None)).transpose(1, 2)
        within = self.self_attn(self.self_attn_layer_norm(changed), bias)
        tokens = tokens + self.gamma_1 * self.S_Adapter(within)
        normed = self.final_layer_norm(tokens)
        mixed = self.gamma_2 * self.image_ffn(normed)
        out: Tensor = tokens + mixed + ADAPTER_SCALE * self.MLP_Adapter(normed)
        return out


class SelfAttention(nn.Module):
    """Attention over the last but one axis; the heads' output is normalised before the last map."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q_proj = nn.Linear(width, width)
        self.k_proj = nn.Linear(width, width, bias=False)
        self.v_proj = nn.Linear(width, width)
        self.out_proj = nn.Linear(width, width)
        self.ln = nn.LayerNorm(width, eps=EPS)

    def forward(self, tokens: Tensor, bias: Tensor | None) -> Tensor:
        """Return a tensor like ``tokens`` ``[N, groups, tokens, width]``."""
        parts = (self.q_proj(tokens), self.k_proj(tokens), self.v_proj(tokens))
        q, k, v = (p.flatten(0, 1).unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in parts)
        found = functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        out: Tensor = self.out_proj(self.ln(found.transpose(1, 2).flatten(2))).view(tokens.shape)
        return out


class Gated(nn.Module):
    """``GELU(a x) * (b x)``."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.wi_0 = nn.Linear(width, inner, bias=False)
        self.wi_1 = nn.Linear(width, inner, bias=False)
        self.act = nn.GELU()

    def forward(self, tokens: Tensor) -> Tensor:
        """Return ``[..., inner]``."""
        gate: Tensor = self.act(self.wi_0(tokens))
        out: Tensor = gate * self.wi_1(tokens)
        return out


class BottleneckAdapter(nn.Module):
    """A small MLP that was trained where the rest was frozen."""

    def __init__(self, width: int, *, skip: bool = False) -> None:
        super().__init__()
        self.skip = skip
        self.D_fc1 = nn.Linear(width, width // BOTTLENECK)
        self.act = nn.GELU()
        self.D_fc2 = nn.Linear(width // BOTTLENECK, width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return a tensor of the same shape."""
        found: Tensor = self.D_fc2(self.act(self.D_fc1(tokens)))
        return tokens + found if self.skip else found
