"""FAB: the smallest change that crosses a boundary, approached from both sides."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import torch
from vcr_core.losses import margin
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.params.gradient import FabParams
from vcr_attacks.plane import onto_plane
from vcr_attacks.sign_loop import Ball
from vcr_attacks.smallest import Smallest, affordable, l2, linf
from vcr_attacks.tangents import Tangents, dual_norm

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.randomness import VideoRandom
    from vcr_core.victim import LossFn, Victim

HALF_LEVEL = 0.5 / 255

FAR = {"linf": 0.3, "l2": 1.0}
"""Radius of random starts where nothing else says how far a boundary is, as in published code."""


class Boundary(NamedTuple):
    """Where the tangent at a point meets a class boundary.

    Attributes:
        gap: ``[b]``, negative on the near side.
        grad: ``[b, T, C, H, W]``, gradient of the gap.
        found: ``[b]`` bool, whether there is any gradient.
    """

    gap: Tensor
    grad: Tensor
    found: Tensor


Look = Callable[["Tensor", "Tensor"], Boundary]


class Fab(BaseVideoAttack):
    """Fast adaptive boundary attack in L2 and L-infinity, a minimal-norm attack.

    Croce & Hein, "Minimally distorted Adversarial Examples with a Fast Adaptive Boundary Attack",
    ICML 2020, algorithm 1. The classifier is replaced by its tangent; the point and the clean video
    both step ``overshoot`` times the way to its boundary inside of the pixel range, and the next
    point lies between the two, at most ``bias`` towards the latter. Whenever it is across, it goes
    back ``1 - back`` of the way to the clean video, and on from there.

    ``boundary = "each"`` looks at one other class a run, the likeliest first (FAB-T, of the
    AutoAttack paper); ``"nearest"`` at the nearest of them in every step, which costs a gradient
    for each. In a targeted contest the boundary is the target's, in one run.

    With norm ``none`` nothing but the pixel range binds, and ``distance`` says what is small. With
    a norm, every point is projected into the ball. Costs at most ``steps`` gradients and as many
    forward passes a run, and one more; it searches on after the first success, whatever the run's
    stop rule says, unless ``smallest`` is off. Uses no randomness before the second restart.
    """

    def __init__(self, params: FabParams | None = None) -> None:
        self.params = params or FabParams()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return the smallest successful change, or the best point where nothing succeeded.

        Args:
            victim: white-box access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success.
            ctx: the threat model, of norm ``none``, ``l2`` or ``linf``, and a generator per video.

        Raises:
            BudgetExhausted: when no video has budget left; best points are with the victim.
        """
        if ctx.threat.is_zero:
            return video.clone()
        search = _Search(self.params, victim, video, goals, ctx)
        for restart in range(self.params.restarts):
            random = ctx.random.child(f"restart-{restart}") if restart else None
            for look, gradients in search.boundaries():
                search.run(look, gradients, random)
        return search.found.answer(victim)


class _Search:
    """Runs of FAB on one batch."""

    def __init__(
        self, params: FabParams, victim: Victim, clean: Tensor, goals: Goals, ctx: AttackContext
    ) -> None:
        threat = ctx.threat
        self._params = params
        self._victim = victim
        self._clean = clean
        self._goals = goals
        self._threat = threat
        self._norm = params.distance if threat.norm == "none" else threat.norm
        self._linf = self._norm == "linf"
        self._measure = linf if self._linf else l2
        self._ball = Ball(threat, clean)
        self._low, self._high = threat.bounds(clean)
        self.found = Smallest(clean, threat, self._measure)
        self._going = torch.ones(len(clean), dtype=torch.bool, device=clean.device)
        self._others = goals.labels.new_zeros(len(clean), 0)
        rows = self._rows(0)
        if rows.numel():
            z = victim.scores(clean[rows], rows)
            done = goals.achieved(z, rows)
            self.found.offer(clean[rows[done]], rows[done])
            self._going[rows[done]] = False
            count = min(params.target_classes, z.shape[1] - 1)
            self._others = goals.labels.new_zeros(len(clean), count)
            others = z.scatter(1, goals.labels[rows].unsqueeze(1), -math.inf)
            self._others[rows] = others.topk(count, dim=1).indices

    def boundaries(self) -> list[tuple[Look, int]]:
        """Return what each run looks at, and how many gradients a look costs."""
        if self._goals.targeted:
            return [(self._one(self._target_gap), 1)]
        if self._params.boundary == "nearest":
            labels, classes = self._goals.labels, self._params.target_classes + 1
            tangents = Tangents(self._victim, labels, classes, linf=self._linf)
            return [(_nearest(tangents), tangents.others)]
        return [(self._one(self._class_gap(n)), 1) for n in range(self._others.shape[1])]

    def run(self, look: Look, gradients: int, random: VideoRandom | None) -> None:
        """Search once, from the clean videos or from random points near them."""
        going = self._going.clone()
        points = self._clean.clone() if random is None else self._start(random)
        for _ in range(self._params.steps):
            rows = self._rows(gradients)
            rows = rows[going[rows]]
            if not rows.numel():
                return
            at = look(points[rows], rows)
            going[rows[~at.found]] = False
            rows = rows[at.found]
            if not rows.numel():
                return
            ahead = self._step(points[rows], rows, at.gap[at.found], at.grad[at.found])
            z = self._victim.scores(ahead, rows)
            won = self._goals.achieved(z, rows)
            self.found.offer(ahead[won], rows[won])
            clean = self._clean[rows[won]]
            ahead[won] = clean + self._params.back * (ahead[won] - clean)
            points[rows] = ahead

    def _rows(self, gradients: int) -> Tensor:
        """Return the videos that take part and can pay for ``gradients`` and a look."""
        if not self._params.smallest:
            return self._victim.active()
        every = torch.arange(len(self._clean), device=self._clean.device)
        return affordable(self._victim, every, gradients=gradients, scores=1)

    def _step(self, points: Tensor, rows: Tensor, gap: Tensor, grad: Tensor) -> Tensor:
        """Return the next points."""
        clean, low, high = self._clean[rows], self._low[rows], self._high[rows]
        away = (grad * (points - clean)).flatten(1).sum(dim=1)
        here = onto_plane(points, grad, self._amount(gap, grad), low, high, linf=self._linf)
        there = onto_plane(clean, grad, away - gap, low, high, linf=self._linf)
        near, far = (self._measure(m).clamp_min(1e-8) for m in (here, there))
        share = (near / (near + far)).clamp_max(self._params.bias).view(-1, 1, 1, 1, 1)
        overshoot = self._params.overshoot
        ahead = (points + overshoot * here) * (1 - share) + (clean + overshoot * there) * share
        return self._ball(ahead.maximum(low).minimum(high), rows)

    def _amount(self, gap: Tensor, grad: Tensor) -> Tensor:
        """Return by how much the gap has to change.

        The victim answers on 8-bit videos, and rounding can hold one exactly on a boundary: where
        that was not across, some value has to move by half a level at least.
        """
        if not self._threat.quantize:
            return -gap
        peak = grad.abs().flatten(1).amax(dim=1).clamp_min(1e-30)
        size = dual_norm(grad, linf=self._linf)
        least = HALF_LEVEL * (size if self._linf else size * (size / peak))
        return torch.where(gap > 0, -gap, (-gap).maximum(least))

    def _start(self, random: VideoRandom) -> Tensor:
        """Return random points, half as far away as the smallest success or the radius."""
        clean = self._clean
        noise = (
            random.uniform(*clean.shape[1:], low=-1.0, high=1.0)
            if self._linf
            else random.normal(*clean.shape[1:])
        ).to(clean)
        radius = clean.new_full((len(clean),), FAR[self._norm])
        if self._threat.norm != "none":
            radius = self._threat.radius(clean).flatten(1 if self._linf else 0)
            radius = radius.amax(dim=1).expand(len(clean)) if self._linf else radius
        radius = radius.minimum(self.found.size)
        scale = (radius / 2 / self._measure(noise)).view(-1, 1, 1, 1, 1)
        every = torch.arange(len(clean), device=clean.device)
        ahead = (clean + scale * noise).maximum(self._low).minimum(self._high)
        return self._ball(ahead, every)

    def _one(self, gap: LossFn) -> Look:
        def look(points: Tensor, rows: Tensor) -> Boundary:
            value, grad, _ = self._victim.loss_and_grad(points, rows, gap)
            return Boundary(value, grad, dual_norm(grad, linf=self._linf) > 0)

        return look

    def _target_gap(self, z: Tensor, rows: Tensor) -> Tensor:
        targets = self._goals.targets
        return -margin(z, self._goals.labels[rows], None if targets is None else targets[rows])

    def _class_gap(self, number: int) -> LossFn:
        def gap(z: Tensor, rows: Tensor) -> Tensor:
            labels = self._goals.labels[rows].unsqueeze(1)
            chosen = self._others[rows, number].unsqueeze(1)
            return (z.gather(1, chosen) - z.gather(1, labels)).squeeze(1)

        return gap


def _nearest(tangents: Tangents) -> Look:
    def look(points: Tensor, rows: Tensor) -> Boundary:
        near = tangents.nearest(points, rows)
        return Boundary(near.gap, near.grad, near.found)

    return look
