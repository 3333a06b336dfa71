"""The smallest move onto a hyperplane inside a box, in L-infinity and L2."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor

ROUNDS = 100
"""More than any video has needed: every round but the last fixes a value at its bound."""


def onto_plane(
    points: Tensor, normal: Tensor, amount: Tensor, low: Tensor, high: Tensor, *, linf: bool
) -> Tensor:
    """Return the smallest ``move`` with ``<normal, move> = amount`` and ``low <= points + move``.

    The projection of Croce & Hein, "Minimally distorted Adversarial Examples with a Fast Adaptive
    Boundary Attack", ICML 2020. Every value moves in the direction of its weight, as far as a
    common factor says (times its weight, for L2) or as its bound allows. How much that brings is a
    concave, piecewise linear function of the factor, so Newton's method from 0 ends at the exact
    solution. Where the corner of the box still lies on this side of the plane, the move goes there.

    Args:
        points: ``[b, ...]`` inside the box.
        normal: ``[b, ...]``.
        amount: ``[b]``, of either sign.
        low: lowest values ``[b, ...]``.
        high: highest values, likewise.
        linf: whether the move is the smallest in L-infinity, else in L2.

    Returns:
        ``[b, ...]``.
    """
    shape = (-1, *(1,) * (points.ndim - 1))
    sign = normal.sign() * amount.sign().view(shape)
    room = torch.where(sign > 0, high - points, points - low).clamp_min_(0).where(sign != 0, 0.0)
    weight = normal.abs()
    speed = torch.ones_like(weight) if linf else weight
    wanted = amount.abs().double()
    factor = torch.zeros_like(wanted)
    for _ in range(ROUNDS):
        reach = speed * factor.to(points).view(shape)
        missing = wanted - _total(weight * reach.minimum(room))
        slope = _total((weight * speed).where(reach < room, 0.0))
        on = (missing > 1e-7 * wanted) & (slope > 0)
        if not bool(on.any()):
            break
        factor = torch.where(on, factor + missing / slope.clamp_min(1e-300), factor)
    return sign * (speed * factor.to(points).view(shape)).minimum(room)


def _total(values: Tensor) -> Tensor:
    """Return the sum of each video ``[b]``, in double precision."""
    return values.flatten(1).sum(dim=1, dtype=torch.float64)
