"""Asking for losses of candidates within a budget, and walking along slopes estimated from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

import torch

from vcr_attacks.sign_loop import Ball, Direction, steepest, step_sizes

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.losses import Loss
    from vcr_core.threat import ThreatModel
    from vcr_core.victim import Victim

Estimate: TypeAlias = "Callable[[Tensor, Tensor], Tensor]"
"""From points ``[b, T, C, H, W]`` and rows ``[b]`` to slopes of the loss, of the same shape."""


def score_loss(choice: Loss | Literal["auto"], goals: Goals, untargeted: Loss = "margin") -> Loss:
    """Return the loss that a parameter names; ``auto`` is cross-entropy when targeted."""
    if choice != "auto":
        return choice
    return "ce" if goals.targeted else untargeted


def first_steps(
    step: float | Literal["auto"], share: float, threat: ThreatModel, clean: Tensor
) -> Tensor:
    """Return the first step of each video, ``[B, T or 1, 1, 1, 1]``; ``auto`` is a share of eps."""
    sizes = step_sizes(step, 1, threat, clean)
    return sizes * (share / 2.5) if step == "auto" else sizes


class Queries:
    """The victim's scores as losses of candidates that are valid answers.

    The victim keeps the best of all points that it is asked about, so each one, probes included,
    is projected into mask, ball and pixel range first. At the border of the ball this shortens one
    side of an antithetic pair; the sign of what the pair says about a pixel stays.

    Args:
        victim: score access.
        goals: what counts as success.
        threat: the threat model.
        clean: ``[B, T, C, H, W]``.
        loss: what decides.
        ball: projection to use in place of the threat's.
        candidates: whether points may be answers; see ``Victim.scores``.
    """

    def __init__(
        self,
        victim: Victim,
        goals: Goals,
        threat: ThreatModel,
        clean: Tensor,
        loss: Loss,
        *,
        ball: Callable[[Tensor, Tensor], Tensor] | None = None,
        candidates: bool = True,
    ) -> None:
        self.victim = victim
        self.clean = clean
        self.ball = ball or Ball(threat, clean)
        self._candidates = candidates
        self._goals = goals
        self._loss: Loss = loss
        self._mask = threat.mask(clean)

    def masked(self, offsets: Tensor) -> Tensor:
        """Return offsets ``[b, T, C, H, W]``, 0 where the threat allows no change."""
        return offsets if self._mask is None else offsets * self._mask

    def losses(self, points: Tensor, rows: Tensor) -> Tensor:
        """Return ``[b]`` for points inside the ball, one query each."""
        scores = self.victim.scores(points, rows, candidate=self._candidates)
        return self._goals.loss(scores, rows, self._loss)

    def look(self, points: Tensor) -> Tensor:
        """Return ``[B]`` for points ``[B, ...]`` inside the ball, infinite for inactive videos."""
        losses = points.new_full((len(points),), math.inf)
        rows = self.victim.active()
        if rows.numel():
            losses[rows] = self.losses(points[rows], rows)
        return losses

    def difference(self, first: Tensor, second: Tensor, rows: Tensor) -> Tensor:
        """Return ``[b]``: loss of ``first`` minus loss of ``second``; both may be overwritten.

        Two queries a video, asked together so that a budget cannot part them: the caller has
        looked with :meth:`able` that there are two left.
        """
        pair = torch.cat([self.ball(first, rows), self.ball(second, rows)])
        ahead, behind = self.losses(pair, rows.repeat(2)).chunk(2)
        return ahead - behind

    def able(self, queries: int) -> Tensor:
        """Return the rows ``[a]`` that are active and have that many queries left."""
        rows = self.victim.active()
        left = [self.victim.remaining(row) for row in rows.tolist()]
        enough = [n is None or n >= queries for n in left]
        return rows[torch.tensor(enough, dtype=torch.bool, device=rows.device)]

    def going_on(self, queries: int) -> Tensor:
        """Return as :meth:`able` does; for other active videos the budget ends the attack here."""
        rows = self.able(queries)
        active = self.victim.active()
        self.victim.give_up(active[~torch.isin(active, rows)])
        return rows

    def among(self, rows: Tensor, queries: int) -> Tensor:
        """Return ``[b]`` bool: which of ``rows`` are active with that many queries left."""
        return torch.isin(rows, self.able(queries))


class Steps:
    """Each video's step size, and which of its steps count.

    Args:
        first: step at the start, ``[B, T or 1, 1, 1, 1]``, in units of the norm.
        least: share of it below which no step falls.
        plateau: looks without progress after which the step is halved; 0 for never.
        choosy: keep a step only if it lowered the loss; it then grows by 5 %, else it is halved.
    """

    GROWTH = 1.05

    def __init__(
        self, first: Tensor, *, least: float = 1.0, plateau: int = 0, choosy: bool = False
    ) -> None:
        self._first = first
        self._least = least
        self._plateau = plateau
        self._choosy = choosy
        batch = len(first)
        self._factor = first.new_ones(batch)
        self._losses = first.new_full((batch,), math.inf)
        self._history: list[list[float]] = [[] for _ in range(batch)]

    def begin(self, losses: Tensor) -> None:
        """Take note of the losses ``[B]`` at the start."""
        self._losses = losses.clone()

    def sizes(self, rows: Tensor) -> Tensor:
        """Return ``[b, T or 1, 1, 1, 1]``."""
        return self._first[rows] * self._factor[rows].view(-1, 1, 1, 1, 1)

    def judge(self, rows: Tensor, losses: Tensor) -> Tensor:
        """Return ``[b]`` bool, whether each step is kept, and adapt the sizes."""
        kept = losses < self._losses[rows] if self._choosy else torch.ones_like(rows).bool()
        self._losses[rows[kept]] = losses[kept]
        if self._choosy:
            change = torch.where(kept, self.GROWTH, 0.5)
            self._factor[rows] = (self._factor[rows] * change).clamp(self._least, 1.0)
        elif self._plateau:
            for row, loss in zip(rows.tolist(), losses.tolist(), strict=True):
                self._remember(row, loss)
        return kept

    def _remember(self, row: int, loss: float) -> None:
        seen = self._history[row]
        seen.append(loss)
        if len(seen) >= self._plateau:
            if seen[-1] >= seen[0]:
                self._factor[row] = (self._factor[row] / 2).clamp_min(self._least)
                seen.clear()
            else:
                del seen[0]


def follow(
    queries: Queries,
    start: Tensor,
    losses: Tensor,
    steps: Steps,
    estimate: Estimate,
    *,
    iterations: int,
    norm: str,
) -> None:
    """Walk ``x <- project(x - size * direction(slope))``; best points are with the victim.

    Costs per iteration the queries of ``estimate`` and one at the new point. An iteration needs
    three queries at least, a pair and the look at the new point: a video with fewer left is not
    asked about any more.

    Args:
        queries: how to ask.
        start: ``[B, T, C, H, W]`` inside the ball; not modified.
        losses: ``[B]`` at ``start``.
        steps: sizes and acceptance.
        estimate: asks for pairs; it leaves one query of each video for the new point.
        iterations: how many at most.
        norm: of the threat, for :func:`~vcr_attacks.sign_loop.steepest`.
    """
    direction = steepest(norm)
    points = start.clone()
    steps.begin(losses)
    for _ in range(iterations):
        rows = queries.going_on(3)
        if not rows.numel():
            return
        advance(queries, points, rows, steps, estimate, direction)


def advance(
    queries: Queries,
    points: Tensor,
    rows: Tensor,
    steps: Steps,
    estimate: Estimate,
    direction: Direction,
) -> None:
    """Make one step of :func:`follow` with videos ``rows``, in ``points``.

    Args:
        queries: how to ask.
        points: ``[B, T, C, H, W]``; rows that moved are overwritten.
        rows: ``[b]``, each with three queries left.
        steps: sizes and acceptance.
        estimate: asks for pairs; it leaves one query of each video for the new point.
        direction: unit moves.
    """
    slopes = queries.masked(estimate(points[rows], rows))
    open_still = queries.among(rows, 1)
    rows = rows[open_still]
    if not rows.numel():
        return
    moves = steps.sizes(rows) * direction(slopes[open_still], rows)
    moved = queries.ball(points[rows] - moves, rows)
    kept = steps.judge(rows, queries.losses(moved, rows))
    points[rows[kept]] = moved[kept]
