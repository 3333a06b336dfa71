"""Steps against the gradient inside the threat's ball: the loop of all sign-gradient attacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from vcr_core.errors import IncompatibleComponents
from vcr_core.threat import clamp_rows

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.threat import ThreatModel
    from vcr_core.victim import LossFn, Victim

Direction: TypeAlias = "Callable[[Tensor, Tensor], Tensor]"
"""From gradients ``[b, T, C, H, W]`` (which it may overwrite) and rows ``[b]`` to unit moves."""


class Ball:
    """Projection into mask, ball and pixel range, with the bounds of ``linf`` computed once.

    Args:
        threat: the threat model of the whole batch.
        clean: ``[B, T, C, H, W]``.
    """

    def __init__(self, threat: ThreatModel, clean: Tensor) -> None:
        self._threat = threat
        self._clean = clean
        self._bounds = threat.bounds(clean) if threat.norm == "linf" else None

    def __call__(self, adv: Tensor, rows: Tensor) -> Tensor:
        """Return points ``[b, T, C, H, W]`` of videos ``rows``, projected; may overwrite them."""
        whole = len(rows) == len(self._clean)
        if self._bounds is not None:
            return clamp_rows(adv, *self._bounds, None if whole else rows)
        if whole:
            return self._threat.project(adv, self._clean)
        return self._threat.select(rows).project(adv, self._clean[rows])


def step_sizes(
    step: float | Literal["auto"], steps: int, threat: ThreatModel, clean: Tensor
) -> Tensor:
    """Return the step of each video, ``[B, T or 1, 1, 1, 1]``, in units of the norm.

    ``auto`` is ``2.5 * eps / steps``, with each video's (or frame's) own radius: enough to cross
    the ball and come back a little.
    """
    size = threat.radius(clean) * (2.5 / steps) if step == "auto" else clean.new_full((1,), step)
    size = size.view(*size.shape, *(1,) * (clean.ndim - size.ndim))
    return size.expand(len(clean), *size.shape[1:])


def steepest(norm: str, mask: Tensor | None = None) -> Direction:
    """Return the direction of steepest ascent in a norm: of unit length, zero where flat.

    Args:
        norm: ``linf`` or ``l2``.
        mask: ``[1, T, 1, H, W]``, 1 where the threat allows change; what lies outside of it must
            not count in the length of an ``l2`` step.

    Raises:
        IncompatibleComponents: for a norm other than ``linf`` and ``l2``.
    """
    if norm == "linf":
        return lambda grad, _rows: grad.sign_()
    if norm == "l2":
        return lambda grad, _rows: unit_l2(grad if mask is None else grad * mask)
    raise IncompatibleComponents(
        f"gradient steps are defined for threat.norm 'linf' and 'l2', not {norm!r}"
    )


def unit_l2(videos: Tensor) -> Tensor:
    """Return each video ``[b, T, C, H, W]`` divided by its L2 norm; zeros stay zeros."""
    # Gradients of a confident model are tiny: their squares would underflow without this.
    largest = videos.abs().flatten(1).amax(dim=1).view(-1, 1, 1, 1, 1)
    scaled = videos / largest.where(largest > 0, largest.new_ones(()))
    size: Tensor = scaled.flatten(1).norm(dim=1).clamp_min(1e-12)
    return scaled / size.view(-1, 1, 1, 1, 1)


def descend(
    victim: Victim,
    start: Tensor,
    ball: Ball,
    *,
    steps: int,
    sizes: Tensor,
    direction: Direction,
    loss: LossFn = "ce",
) -> Tensor:
    """Run ``x <- project(x - size * direction(grad L))`` and return the last points.

    Only active videos move, and a video that is done keeps its point. Each costs at most ``steps``
    gradients and one closing forward pass, in which its last point is looked at. Success and best
    points are the victim's to keep: the logits of a step's gradient judge the point before the
    step, so stopping early needs no further pass.

    Args:
        victim: metered access; says which videos are active.
        start: ``[B, T, C, H, W]`` inside the ball; not modified.
        ball: projection.
        steps: number of updates.
        sizes: from :func:`step_sizes`.
        direction: unit moves, e.g. :func:`steepest`.
        loss: what to minimise.

    Raises:
        BudgetExhausted: when no active video has budget left; best points are with the victim.
    """
    points = start.clone()
    for _ in range(steps):
        rows = victim.active()
        if not rows.numel():
            return points
        whole = len(rows) == len(points)
        here = points if whole else points[rows]
        move = direction(victim.loss_and_grad(here, rows, loss).grad, rows)
        move.mul_(sizes if whole else sizes[rows])
        still = victim.active()
        if len(still) != len(rows):
            # Rows that this query found to be done stay where they were found.
            move.mul_(_among(rows, still))
        moved = ball(here.sub_(move), rows)
        if whole:
            points = moved
        else:
            points[rows] = moved
    rows = victim.active()
    if rows.numel():
        victim.scores(points if len(rows) == len(points) else points[rows], rows)
    return points


def answer(victim: Victim, last: Tensor, keep: Literal["best", "last"]) -> Tensor:
    """Return what the attack hands back: best points, or last ones of videos not stopped."""
    result = victim.best()
    if keep == "last":
        rows = victim.active()
        result[rows] = last[rows]
    return result


def _among(rows: Tensor, others: Tensor) -> Tensor:
    """Return ``[b, 1, 1, 1, 1]`` bool: which of ``rows`` are in ``others``."""
    return (rows.unsqueeze(1) == others.unsqueeze(0)).any(dim=1).view(-1, 1, 1, 1, 1)
