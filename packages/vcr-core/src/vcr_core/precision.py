"""A model's pass in half precision: ``protocol.autocast``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

EXPONENT = 0
"""Gradients enter a float16 pass with a largest value in [1/2, 1), where that of a log-probability
begins: some networks multiply it by thousands, and float16 ends at 65504."""


def autocast(run: Callable[[Tensor], Tensor], clips: Tensor, dtype: torch.dtype | None) -> Tensor:
    """Return ``run(clips)`` as float32, computed under ``torch.autocast`` of that type.

    float16 has few exponents: the gradient of a loss that is nearly reached would be all zeros. So
    on its way back through the pass the gradient of each clip is multiplied by a power of two of
    its own, and divided by it at the pixels, which changes no bit of what float16 can hold.
    bfloat16 has the exponents of float32 and needs nothing.

    Args:
        run: the pass, from ``[N, T', C, H, W]``; rows must be independent.
        clips: float32.
        dtype: ``None`` for float32 as it is.
    """
    if dtype is None:
        return run(clips)
    tracked = torch.is_grad_enabled() and clips.requires_grad
    scales: list[Tensor] = []
    if tracked and dtype is torch.float16:
        clips = _Divided.apply(clips, scales)
    with torch.autocast(clips.device.type, dtype=dtype):
        out = run(clips)
    out = out.float()
    if tracked and dtype is torch.float16:
        out = _Multiplied.apply(out, scales, len(clips))
    return out


def power_of_two(grad: Tensor, rows: int) -> Tensor:
    """Return ``[rows]`` factors that bring the largest value of each row to [1/2, 1).

    The factor is 1 for rows of zeros and for those with values that are not finite. It is one for
    all, ``[1]``, where ``grad`` has another number of rows.
    """
    flat = grad.detach().abs().reshape(rows if grad.shape[0] == rows else 1, -1)
    largest = flat.amax(dim=1)
    exponent = torch.frexp(largest).exponent
    usable = torch.isfinite(largest) & (largest > 0)
    one = torch.ones_like(largest)
    return torch.where(usable, torch.ldexp(one, EXPONENT - exponent), one)


class _Multiplied(torch.autograd.Function):
    """The identity at the end of a pass, where gradients enter it."""

    @staticmethod
    def forward(ctx: Any, out: Tensor, scales: list[Tensor], rows: int) -> Tensor:
        ctx.scales, ctx.rows = scales, rows
        return out.view_as(out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (grad,) = grads
        scale = power_of_two(grad, ctx.rows)
        ctx.scales[:] = [scale]
        return grad * _like(scale, grad), None, None


class _Divided(torch.autograd.Function):
    """The identity at the beginning of a pass, where gradients leave it."""

    @staticmethod
    def forward(ctx: Any, clips: Tensor, scales: list[Tensor]) -> Tensor:
        ctx.scales = scales
        return clips.view_as(clips)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (grad,) = grads
        (scale,) = ctx.scales
        return grad / _like(scale, grad), None


def _like(scale: Tensor, grad: Tensor) -> Tensor:
    return scale.view(-1, *[1] * (grad.dim() - 1))
