"""DeepFool: to the nearest boundary of the linearised classifier, again and again."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.params.gradient import DeepFoolParams
from vcr_attacks.sign_loop import Ball

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.victim import LossFn, Victim


class DeepFool(BaseVideoAttack):
    """DeepFool in L2 and L-infinity, a minimal-norm attack without a targeted mode.

    Moosavi-Dezfooli, Fawzi, Frossard, CVPR 2016, algorithm 2 (and its Linf form, section 3.3):
    the classifier is replaced by its tangent, the video moved to the nearest boundary of that,
    until the label changes. Which classes are looked at is decided at the clean video. A step is at
    least ``overshoot`` times as long as all moves before it: the victim answers on 8-bit videos,
    and rounding can hold one exactly on a boundary. Norm ``none`` gives the L2 form without a
    bound; with a norm, every point is projected into the ball.

    Costs ``classes - 1`` gradients a step, each with its forward pass, and one closing forward
    pass; a video stops at its first success, whatever the run's stop rule says. Uses no randomness.
    """

    def __init__(self, params: DeepFoolParams | None = None) -> None:
        self.params = params or DeepFoolParams()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return videos just across the nearest boundary, or the best points if none was crossed.

        Args:
            victim: white-box access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success; untargeted.
            ctx: the threat model, of norm ``none``, ``l2`` or ``linf``.

        Raises:
            BudgetExhausted: when no video has budget left; best points are with the victim.
        """
        threat = ctx.threat
        if threat.is_zero:
            return video.clone()
        ball = Ball(threat, video)
        tangents = _Tangents(victim, goals, self.params.classes, linf=threat.norm == "linf")
        moved = torch.zeros_like(video)
        points = video.clone()
        going = torch.ones(len(video), dtype=torch.bool, device=video.device)
        for _ in range(self.params.steps):
            rows = victim.active()
            rows = rows[going[rows]]
            if not rows.numel():
                return victim.best()
            least = self.params.overshoot * tangents.size(moved[rows])
            move, crossed, found = tangents.nearest(points[rows], rows, least)
            going[rows[crossed | ~found]] = False
            rows, move = rows[found & ~crossed], move[found & ~crossed]
            moved[rows] += move
            ahead = video[rows] + (1 + self.params.overshoot) * moved[rows]
            points[rows] = ball(ahead, rows)
        rows = victim.active()
        rows = rows[going[rows]]
        if rows.numel():
            victim.scores(points[rows], rows)
        return victim.best()


class _Tangents:
    """Linearised gaps between the label and the other classes."""

    def __init__(self, victim: Victim, goals: Goals, classes: int, *, linf: bool) -> None:
        self._victim = victim
        self._goals = goals
        self._linf = linf
        others = min(classes, victim.num_classes) - 1
        self._order = goals.labels.new_full((len(victim), others), -1)

    def size(self, change: Tensor) -> Tensor:
        """Return the norm ``[b]`` in which distances are measured."""
        flat = change.flatten(1)
        return flat.abs().amax(dim=1) if self._linf else flat.norm(dim=1)

    def nearest(self, points: Tensor, rows: Tensor, least: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return moves to the nearest boundary, which videos are across, which moves exist.

        Args:
            points: ``[b, T, C, H, W]``.
            rows: ``[b]``.
            least: ``[b]``, moves are at least as long.
        """
        move = torch.zeros_like(points)
        nearest = points.new_full((len(rows),), math.inf)
        crossed = torch.zeros(len(rows), dtype=torch.bool, device=points.device)
        left = torch.arange(len(rows), device=points.device)
        for number in range(self._order.shape[1]):
            gap, grad, z = self._victim.loss_and_grad(points[left], rows[left], self._gap(number))
            if number == 0:
                crossed = self._goals.achieved(z, rows)
            size = grad.flatten(1).abs().sum(dim=1) if self._linf else grad.flatten(1).norm(dim=1)
            distance = (gap.abs() / size).where(size > 0, nearest.new_tensor(math.inf))
            closer = distance < nearest[left]
            length = distance.maximum(least[left])
            scale = (length if self._linf else length / size).view(-1, 1, 1, 1, 1)
            step = scale * (grad.sign() if self._linf else grad)
            move[left[closer]], nearest[left[closer]] = step[closer], distance[closer]
            left = left[~crossed[left]]
            if not left.numel():
                break
        return move, crossed, nearest.isfinite()

    def _gap(self, number: int) -> LossFn:
        """Return ``z_k - z_y`` with the ``number``-th likeliest other class of the clean video."""

        def gap(z: Tensor, rows: Tensor) -> Tensor:
            labels = self._goals.labels[rows].unsqueeze(1)
            new = self._order[rows, 0] < 0
            if bool(new.any()):
                others = z.detach()[new].scatter(1, labels[new], -math.inf)
                self._order[rows[new]] = others.topk(self._order.shape[1], dim=1).indices
            chosen = self._order[rows, number].unsqueeze(1)
            return (z.gather(1, chosen) - z.gather(1, labels)).squeeze(1)

        return gap
