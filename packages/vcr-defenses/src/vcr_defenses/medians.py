"""Medians of shifted copies of a tensor, with a subgradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

Window: TypeAlias = "Sequence[tuple[slice, ...]]"
"""Views of a padded tensor, all of the output's shape, odd in number."""


_PART_ELEMENTS = 2**16


def median_of(values: Sequence[Tensor]) -> Tensor:
    """Return the elementwise median of an odd number of tensors of one shape.

    Of any ``n // 2 + 2`` values neither the least nor the greatest can be the median: both are
    dropped and the next value is taken in, until three are left.
    """
    waiting = list(values)
    held = [waiting.pop() for _ in range(len(values) // 2 + 2)] if len(values) > 1 else waiting
    while len(held) > 1:
        held = _without_extremes(held)
        if waiting:
            held.append(waiting.pop())
    return held[0]


def _without_extremes(values: list[Tensor]) -> list[Tensor]:
    """Return the values without their elementwise minimum and maximum."""
    if len(values) == 3:
        low = torch.minimum(values[0], values[1])
        high = torch.maximum(values[0], values[1])
        return [torch.maximum(low, torch.minimum(high, values[2]))]
    half = len(values) // 2
    pairs = [(values[i], values[-1 - i]) for i in range(half)]
    # After pairs are ordered, the minimum is among the lower ones and the maximum among the upper
    # ones; a value without a partner goes through both rows.
    lower = [torch.minimum(a, b) for a, b in pairs] + values[half : len(values) - half]
    for i in range(1, len(lower)):
        lower[0], lower[i] = torch.minimum(lower[0], lower[i]), torch.maximum(lower[0], lower[i])
    upper = [torch.maximum(a, b) for a, b in pairs]
    if len(lower) > half:
        upper.append(lower.pop())
    for i in range(1, len(upper)):
        upper[0], upper[i] = torch.maximum(upper[0], upper[i]), torch.minimum(upper[0], upper[i])
    return lower[1:] + upper[1:]


class MedianOfViews(torch.autograd.Function):
    """Median of views of a tensor; the gradient goes to the first view that holds the median.

    Neither pass depends on the order of additions, so both are the same on every device.
    """

    @staticmethod
    def forward(ctx: Any, source: Tensor, views: Window, axis: int) -> Tensor:
        """Return the median of ``source[view]`` over the views, in parts along ``axis``."""
        rows = source.shape[axis]
        size = max(1, _PART_ELEMENTS * rows // max(1, source.numel()))
        parts = torch.split(source, size, axis)
        result = torch.cat([median_of([part[v] for v in views]) for part in parts], axis)
        ctx.views = views
        ctx.save_for_backward(source, result)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        """Return the subgradient with respect to ``source``."""
        source, result = ctx.saved_tensors
        total = torch.zeros_like(source)
        left = grads[0]
        for view in ctx.views:
            taken = torch.where(source[view] == result, left, 0)
            total[view] += taken
            left = left - taken
        return total, None, None


def median_over(source: Tensor, views: Window, axis: int) -> Tensor:
    """Return the median over views of ``source``, differentiable.

    Args:
        source: padded values.
        views: index tuples; every view leaves ``axis`` whole.
        axis: where ``source`` may be cut into parts, each of them small enough for fast memory.
    """
    result: Tensor = MedianOfViews.apply(source, views, axis)
    return result
