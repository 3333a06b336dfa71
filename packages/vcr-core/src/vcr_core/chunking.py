"""Exact gradients of a model that sees its clips in chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from torch import Tensor


def chunked(run: Callable[[Tensor], Tensor], clips: Tensor, chunk: int | None) -> Tensor:
    """Return ``run(clips)`` computed at most ``chunk`` clips at a time.

    The gradient is that of the whole, for any chunk size and any loss on the result: the forward
    pass keeps no graph, and the backward pass recomputes each chunk with its share of the outer
    factor (two forwards and one backward instead of one and one). Memory is that of one chunk.

    Args:
        run: from ``[n, T', C, H, W]`` to logits ``[n, V_crop, K]``; rows must be independent.
        clips: ``[N, T', C, H, W]``.
        chunk: clips at a time; ``None`` for all.
    """
    if chunk is None or clips.shape[0] <= chunk:
        return run(clips)
    if not (torch.is_grad_enabled() and clips.requires_grad):
        return torch.cat([run(part) for part in torch.split(clips, chunk)])
    result: Tensor = _Recomputed.apply(clips, run, chunk)
    return result


class _Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, clips: Tensor, run: Callable[[Tensor], Tensor], chunk: int) -> Tensor:
        ctx.save_for_backward(clips)
        ctx.run, ctx.chunk = run, chunk
        with torch.no_grad():
            return torch.cat([run(part) for part in torch.split(clips, chunk)])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (clips,) = ctx.saved_tensors
        parts = []
        for part, outer in zip(
            torch.split(clips, ctx.chunk), torch.split(grads[0], ctx.chunk), strict=True
        ):
            with torch.enable_grad():
                leaf = part.detach().requires_grad_()
                out = ctx.run(leaf)
            parts.append(torch.autograd.grad(out, leaf, outer)[0])
        return torch.cat(parts), None, None
