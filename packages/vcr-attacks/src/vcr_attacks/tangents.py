"""The classifier replaced by its tangent: how far which class boundary is, and the way across."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.victim import LossFn, Victim


@dataclass(frozen=True, slots=True)
class Nearest:
    """The nearest boundary of the linearised classifier at each point.

    Attributes:
        gap: ``[b]``, ``z_k - z_label`` of its class, negative on the label's side.
        grad: ``[b, T, C, H, W]``, gradient of the gap.
        size: ``[b]``, dual norm of the gradient: the distance is ``|gap| / size``.
        crossed: ``[b]`` bool, points that are not in the label's class any more.
        found: ``[b]`` bool, points where any boundary has a gradient.
    """

    gap: Tensor
    grad: Tensor
    size: Tensor
    crossed: Tensor
    found: Tensor


class Tangents:
    """Linearised gaps between a label and the classes that were likeliest at the first point.

    Args:
        victim: white-box access.
        labels: ``[B]``, the classes to leave.
        classes: likeliest classes that are looked at, the label's included.
        linf: whether distances are L-infinity ones, else L2.
    """

    def __init__(self, victim: Victim, labels: Tensor, classes: int, *, linf: bool) -> None:
        self._victim = victim
        self._labels = labels
        self._linf = linf
        others = min(classes, victim.num_classes) - 1
        self._order = labels.new_full((len(labels), others), -1)

    @property
    def others(self) -> int:
        """Number of gradients that one look costs each video."""
        return self._order.shape[1]

    def length(self, change: Tensor) -> Tensor:
        """Return the norm ``[b]`` in which distances are measured."""
        flat = change.flatten(1)
        return flat.abs().amax(dim=1) if self._linf else flat.norm(dim=1)

    def nearest(self, points: Tensor, rows: Tensor) -> Nearest:
        """Return the nearest boundary; a point that is across costs one gradient only.

        Args:
            points: ``[b, T, C, H, W]``.
            rows: ``[b]``.
        """
        far = points.new_tensor(math.inf)
        distances = far.repeat(len(rows))
        best_gap, best_size = torch.zeros_like(distances), torch.ones_like(distances)
        best = torch.zeros_like(points)
        crossed = torch.zeros(len(rows), dtype=torch.bool, device=points.device)
        left = torch.arange(len(rows), device=points.device)
        for number in range(self._order.shape[1]):
            gap, grad, z = self._victim.loss_and_grad(points[left], rows[left], self._gap(number))
            if number == 0:
                crossed = z.argmax(dim=1) != self._labels[rows]
            size = dual_norm(grad, linf=self._linf)
            distance = (gap.abs() / size).where(size > 0, far)
            closer = distance < distances[left]
            here = left[closer]
            distances[here], best[here] = distance[closer], grad[closer]
            best_gap[here], best_size[here] = gap[closer], size[closer]
            left = left[~crossed[left]]
            if not left.numel():
                break
        return Nearest(best_gap, best, best_size, crossed, distances.isfinite())

    def _gap(self, number: int) -> LossFn:
        """Return ``z_k - z_label`` with the ``number``-th likeliest other class."""

        def gap(z: Tensor, rows: Tensor) -> Tensor:
            labels = self._labels[rows].unsqueeze(1)
            new = self._order[rows, 0] < 0
            if bool(new.any()):
                others = z.detach()[new].scatter(1, labels[new], -math.inf)
                self._order[rows[new]] = others.topk(self._order.shape[1], dim=1).indices
            chosen = self._order[rows, number].unsqueeze(1)
            return (z.gather(1, chosen) - z.gather(1, labels)).squeeze(1)

        return gap


def dual_norm(grad: Tensor, *, linf: bool) -> Tensor:
    """Return ``[b]``: how much a unit move can change what ``grad [b, ...]`` is the gradient of."""
    flat = grad.flatten(1)
    return flat.abs().sum(dim=1) if linf else flat.norm(dim=1)


def cross(
    victim: Victim,
    start: Tensor,
    labels: Tensor,
    bound: Callable[[Tensor, Tensor], Tensor],
    *,
    classes: int,
    overshoot: float,
    steps: int,
    linf: bool = False,
) -> tuple[Tensor, Tensor]:
    """Move to the nearest boundary of the tangent, again and again, until the class is another.

    Moosavi-Dezfooli, Fawzi, Frossard, CVPR 2016, algorithm 2 (and its Linf form, section 3.3). A
    step is at least ``overshoot`` times as long as all moves before it: the victim answers on 8-bit
    videos, and rounding can hold one exactly on a boundary.

    Args:
        victim: white-box access; only its active videos take part.
        start: ``[B, T, C, H, W]``.
        labels: ``[B]``, the classes to leave.
        bound: projects points ``[b, ...]`` of videos ``rows``.
        classes: likeliest classes that are looked at, the label's included.
        overshoot: share by which moves are lengthened.
        steps: linearisations at most.
        linf: whether the moves are small in L-infinity, else in L2.

    Returns:
        The last points, and ``[B]`` bool: which of them are in another class.

    Raises:
        BudgetExhausted: when no video has budget left; best points are with the victim.
    """
    tangents = Tangents(victim, labels, classes, linf=linf)
    moved, points = torch.zeros_like(start), start.clone()
    across = torch.zeros(len(start), dtype=torch.bool, device=start.device)
    going = ~across
    for _ in range(steps):
        rows = victim.active()
        rows = rows[going[rows]]
        if not rows.numel():
            return points, across
        near = tangents.nearest(points[rows], rows)
        across[rows] = near.crossed
        on = near.found & ~near.crossed
        going[rows[~on]] = False
        rows = rows[on]
        least = overshoot * tangents.length(moved[rows])
        length = (near.gap[on].abs() / near.size[on]).maximum(least)
        grad = near.grad[on]
        scale = (length if linf else length / near.size[on]).view(-1, 1, 1, 1, 1)
        moved[rows] += scale * (grad.sign() if linf else grad)
        points[rows] = bound(start[rows] + (1 + overshoot) * moved[rows], rows)
    rows = victim.active()
    rows = rows[going[rows]]
    if rows.numel():
        across[rows] = victim.scores(points[rows], rows).argmax(dim=1) != labels[rows]
    return points, across
