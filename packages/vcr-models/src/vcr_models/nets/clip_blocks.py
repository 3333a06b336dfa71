"""CLIP's transformer blocks and towers, which ActionCLIP, ILA, TAdaFormer and UniFormerV2 share.

Radford et al., "Learning Transferable Visual Models From Natural Language Supervision",
arXiv 2103.00020, section 2.4. Parameter names are those of the official release, so that its files
and those of models that were tuned from it fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn import functional

from vcr_models.nets.memory import Recomputing

if TYPE_CHECKING:
    from torch import Tensor

EPS = 1e-5


class QuickGELU(nn.Module):
    """``x sigmoid(1.702 x)``: the approximation of GELU that CLIP was trained with."""

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of the same shape."""
        return x * torch.sigmoid(1.702 * x)


class Attention(nn.Module):
    """Multi-head attention with the three input maps in one matrix.

    Args:
        width: channels of a token.
        heads: attention heads.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.in_proj_weight = nn.Parameter(torch.zeros(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * width))
        self.out_proj = nn.Linear(width, width)

    def forward(self, tokens: Tensor, *, causal: bool = False) -> Tensor:
        """Return ``[N, tokens, width]``; ``causal``: no token looks at a later one."""
        mixed = functional.linear(tokens, self.in_proj_weight, self.in_proj_bias)
        q, k, v = mixed.unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)  # type: ignore[no-untyped-call]
        found = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        out: Tensor = self.out_proj(found.transpose(1, 2).flatten(2))
        return out

    def cross(self, asking: Tensor, others: Tensor) -> Tensor:
        """Return ``[N, asking, width]``: attention to tokens of another sequence."""
        width = asking.shape[-1]
        q = functional.linear(asking, self.in_proj_weight[:width], self.in_proj_bias[:width])
        kv = functional.linear(others, self.in_proj_weight[width:], self.in_proj_bias[width:])
        q = q.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # type: ignore[no-untyped-call]
        k, v = kv.unflatten(-1, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)  # type: ignore[no-untyped-call]
        found = functional.scaled_dot_product_attention(q, k, v)
        out: Tensor = self.out_proj(found.transpose(1, 2).flatten(2))
        return out


class Mlp(nn.Module):
    """Two linear maps with QuickGELU between them."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.c_fc = nn.Linear(width, inner)
        self.gelu = QuickGELU()
        self.c_proj = nn.Linear(inner, width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return ``[N, tokens, width]``."""
        out: Tensor = self.c_proj(self.gelu(self.c_fc(tokens)))
        return out


class Block(nn.Module):
    """A residual attention block.

    Args:
        width: channels of a token.
        heads: attention heads.
        causal: whether tokens look at earlier ones only.
        eps: of the norms.
    """

    def __init__(self, width: int, heads: int, *, causal: bool = False, eps: float = EPS) -> None:
        super().__init__()
        self.causal = causal
        self.attn = Attention(width, heads)
        self.ln_1 = nn.LayerNorm(width, eps=eps)
        self.mlp = Mlp(width, 4 * width)
        self.ln_2 = nn.LayerNorm(width, eps=eps)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return ``[N, tokens, width]``."""
        tokens = tokens + self.attn(self.ln_1(tokens), causal=self.causal)
        out: Tensor = tokens + self.mlp(self.ln_2(tokens))
        return out


class Transformer(nn.Module):
    """A stack of blocks under the name ``resblocks``."""

    def __init__(
        self, width: int, depth: int, heads: int, *, causal: bool = False, eps: float = EPS
    ) -> None:
        super().__init__()
        self.resblocks = Recomputing(
            Block(width, heads, causal=causal, eps=eps) for _ in range(depth)
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """Return ``[N, tokens, width]``."""
        out: Tensor = self.resblocks(tokens)
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageShape:
    """Sizes of an image tower.

    Attributes:
        width: channels of a token.
        depth: number of blocks.
        patch: side of a token in pixels.
        size: side of a frame in pixels.
        output: channels of a frame's feature.
        heads: attention heads; 64 channels each where nothing else is said.
    """

    width: int = 768
    depth: int = 12
    patch: int = 16
    size: int = 224
    output: int = 512
    heads: int = 0

    @property
    def grid(self) -> int:
        """Tokens along a side."""
        return self.size // self.patch

    @property
    def head_count(self) -> int:
        """Number of attention heads."""
        return self.heads or self.width // 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TextShape:
    """Sizes of a text tower.

    Attributes:
        width: channels of a token.
        depth: number of blocks.
        heads: attention heads.
        context: tokens of a text.
        vocabulary: number of different tokens.
        output: channels of a text's feature.
    """

    width: int = 512
    depth: int = 12
    heads: int = 8
    context: int = 77
    vocabulary: int = 49408
    output: int = 512


class ImageTower(nn.Module):
    """CLIP's vision transformer.

    Args:
        shape: its sizes.
    """

    def __init__(self, shape: ImageShape) -> None:
        super().__init__()
        width = shape.width
        self.conv1 = nn.Conv2d(3, width, shape.patch, shape.patch, bias=False)
        self.class_embedding = nn.Parameter(torch.zeros(width))
        self.positional_embedding = nn.Parameter(torch.zeros(1 + shape.grid**2, width))
        self.ln_pre = nn.LayerNorm(width, eps=EPS)
        self.transformer = self.blocks(shape)
        self.ln_post = nn.LayerNorm(width, eps=EPS)
        self.proj = nn.Parameter(torch.zeros(width, shape.output))

    def blocks(self, shape: ImageShape) -> nn.Module:
        """Return what turns tokens into tokens; for towers with blocks of their own."""
        return Transformer(shape.width, shape.depth, shape.head_count)

    def tokens(self, frames: Tensor) -> Tensor:
        """Return ``[N, 1 + places, width]`` of ``[N, 3, H, W]``, the class token first."""
        out: Tensor = self.ln_pre(
            with_class_token(self.conv1(frames), self.class_embedding, self.positional_embedding)
        )
        return out

    def forward(self, frames: Tensor) -> Tensor:
        """Return features ``[N, output]`` of normalised frames ``[N, 3, H, W]``."""
        tokens = self.transformer(self.tokens(frames))
        out: Tensor = self.ln_post(tokens[:, 0]) @ self.proj
        return out


def with_class_token(maps: Tensor, first: Tensor, positions: Tensor) -> Tensor:
    """Return tokens ``[N, 1 + h w, width]`` of maps ``[N, width, h, w]``, positions added."""
    tokens = maps.flatten(2).transpose(1, 2)
    return torch.cat((first.expand(len(tokens), 1, -1), tokens), dim=1) + positions


class TextTower(nn.Module):
    """CLIP's text side; its parameters lie at the top of the state, so it is a base class.

    Args:
        shape: its sizes.
    """

    def __init__(self, shape: TextShape) -> None:
        super().__init__()
        self.positional_embedding = nn.Parameter(torch.zeros(shape.context, shape.width))
        self.text_projection = nn.Parameter(torch.zeros(shape.width, shape.output))
        self.logit_scale = nn.Parameter(torch.zeros(()))
        self.transformer = Transformer(shape.width, shape.depth, shape.heads, causal=True)
        self.token_embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.ln_final = nn.LayerNorm(shape.width, eps=EPS)

    def text_features(self, texts: Tensor) -> Tensor:
        """Return features ``[N, output]`` of token rows ``[N, context]`` int64.

        A text's feature is that of its end token, which has the largest number. No token looks at
        a later one, so what lies behind the last end token is left out.
        """
        texts = texts[:, : int(texts.argmax(dim=-1).max()) + 1]
        tokens = self.token_embedding(texts) + self.positional_embedding[: texts.shape[1]]
        tokens = self.ln_final(self.transformer(tokens))
        rows = torch.arange(len(texts), device=texts.device)
        out: Tensor = tokens[rows, texts.argmax(dim=-1)] @ self.text_projection
        return out


class Texts(nn.Module):
    """Texts of the classes, and their features once they are known; neither is part of the state.

    Args:
        rows: token rows ``[..., context]`` int64.
    """

    rows: Tensor
    features: Tensor | None

    def __init__(self, rows: Tensor) -> None:
        super().__init__()
        self.register_buffer("rows", rows, persistent=False)
        self.register_buffer("features", None, persistent=False)

    @torch.no_grad()
    def known(self, tower: TextTower, batch: int = 256) -> Tensor:
        """Return features ``[..., output]``; they are constants of a classifier."""
        if self.features is None:
            parts = torch.split(self.rows.flatten(0, -2), batch)
            found = torch.cat([tower.text_features(part) for part in parts])
            self.features = found.view(*self.rows.shape[:-1], -1)
        return self.features


class Clip(TextTower):
    """Both towers, as the official files hold them.

    Args:
        image: sizes of the image tower.
        text: sizes of the text tower.
    """

    def __init__(self, image: ImageShape, text: TextShape) -> None:
        super().__init__(text)
        self.visual = ImageTower(image)
