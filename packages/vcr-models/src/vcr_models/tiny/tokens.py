"""What the tiny transformers share: order of axes, attention written out, an MLP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import nn

if TYPE_CHECKING:
    from torch import Tensor


def channels_last(maps: Tensor) -> Tensor:
    """Return ``[N, T, h, w, C]`` of ``[N, C, T, h, w]``, safe to put behind a batch norm.

    The gradient comes back with channels last. In evaluation mode the CPU's backward pass of a
    batch norm reads that wrongly when there is one clip, so it is brought into order first.
    """
    if maps.requires_grad:
        maps.register_hook(torch.Tensor.contiguous)  # type: ignore[no-untyped-call]
    return maps.permute(0, 2, 3, 4, 1)


def channels_first(maps: Tensor) -> Tensor:
    """Return ``[N, C, T, h, w]``, contiguous, of ``[N, T, h, w, C]``."""
    return maps.permute(0, 4, 1, 2, 3).contiguous()


def attend(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None = None) -> Tensor:
    """Scaled dot-product attention over the last but one dimension.

    Written out: the fused kernel has no double backward on the CPU.

    Args:
        query: ``[..., n, width]``.
        key: ``[..., m, width]``.
        value: ``[..., m, width]``.
        bias: added to the scores ``[..., n, m]``, if any.
    """
    scores = query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5
    if bias is not None:
        scores = scores + bias
    mixed: Tensor = scores.softmax(dim=-1) @ value
    return mixed


class SelfAttention(nn.Module):
    """Every token of a set attends to every other."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)

    def forward(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return ``[..., tokens, width]``; ``bias`` is ``[heads, tokens, tokens]`` or wider."""
        *sets, tokens, width = x.shape
        qkv = self.qkv(x).reshape(*sets, tokens, 3, self.heads, width // self.heads)
        query, key, value = qkv.movedim(-3, 0).transpose(-3, -2)
        mixed = attend(query, key, value, bias)
        y: Tensor = self.project(mixed.transpose(-3, -2).reshape(x.shape))
        return y


class Mlp(nn.Module):
    """Two linear maps with a GELU between them."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.expand = nn.Linear(width, hidden)
        self.contract = nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of the same shape."""
        y: Tensor = self.contract(F.gelu(self.expand(x)))
        return y
