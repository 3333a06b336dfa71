"""Auto-PGD: gradient steps with momentum whose size the attack sets itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from vcr_core.losses import dlr
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.params.gradient import ApgdParams
from vcr_attacks.sign_loop import Ball, steepest, unit_l2

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.losses import Loss
    from vcr_core.protocols import AttackContext
    from vcr_core.randomness import VideoRandom
    from vcr_core.threat import ThreatModel
    from vcr_core.victim import Victim

    RowLoss = Callable[[Tensor, Tensor], Tensor]  # of logits [b, K] and rows [b]

MOMENTUM = 0.75
"""Weight of the new step against the last movement, equation 1."""


class Apgd(BaseVideoAttack):
    """APGD in the L-infinity or L2 ball.

    Croce & Hein, "Reliable Evaluation of Adversarial Robustness with an Ensemble of Diverse
    Parameter-free Attacks", ICML 2020, algorithm 1. The step starts at the ball's diameter and is
    halved at checkpoints where the loss stopped falling, and the search then goes on from the best
    point. Costs at most ``restarts * steps`` gradients and ``restarts`` forward passes; the
    published code takes a gradient at the last point too, which nothing uses.

    With ``loss = "dlr-targeted"`` an untargeted contest is fought once for each of the
    ``target_classes`` runners-up of the clean prediction (one more forward pass), each run pulling
    towards its class; any success counts.

    Random starts lie on the surface of the ball, as in the published code.
    """

    def __init__(self, params: ApgdParams | None = None) -> None:
        self.params = params or ApgdParams()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return perturbed videos within the threat's ball.

        Args:
            victim: white-box access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success; the victim minimises their loss.
            ctx: the threat model, of norm ``linf`` or ``l2``, and one generator per video.

        Raises:
            BudgetExhausted: when no video has budget left; best points are with the victim.
            IncompatibleComponents: for another norm.
            UsageError: for a DLR loss with too few classes.
        """
        params = self.params
        if ctx.threat.is_zero:
            return video.clone()
        search = _Search(victim, video, ctx.threat, params)
        if params.loss == "dlr-targeted" and not goals.targeted:
            losses = _towards_others(victim, video, goals, params.target_classes)
        else:
            losses = [_towards_goal(goals, params.loss)]
        for restart in range(params.restarts):
            for number, loss in enumerate(losses):
                search.run(loss, ctx.random.child(f"restart-{restart}-{number}"))
        return victim.best()


def checkpoints(steps: int) -> list[int]:
    """Return the iterations after which the step may be halved, in the published integer form.

    The first period is 22 % of all steps, each later one 3 % of all steps shorter, at least 6 %.
    """
    period, shorter, least = (max(int(share * steps), 1) for share in (0.22, 0.03, 0.06))
    found, at = [], period
    while at <= steps:
        found.append(at)
        period = max(period - shorter, least)
        at += period
    return found


class _Search:
    """Runs of APGD on one batch; only videos that the victim calls active take part."""

    def __init__(
        self, victim: Victim, clean: Tensor, threat: ThreatModel, params: ApgdParams
    ) -> None:
        self._victim = victim
        self._clean = clean
        self._threat = threat
        self._params = params
        self._direction = steepest(threat.norm, threat.mask(clean))
        self._ball = Ball(threat, clean)
        radius = threat.radius(clean)
        radius = radius.view(*radius.shape, *(1,) * (clean.ndim - radius.ndim))
        self._radius = radius.expand(len(clean), *radius.shape[1:])
        self._checkpoints = set(checkpoints(params.steps))

    def run(self, loss: RowLoss, random: VideoRandom) -> None:
        """Search once from a random start; the victim keeps the best points."""
        victim, steps = self._victim, self._params.steps
        rows = victim.active()
        if not rows.numel():
            return
        points = self._start(random)
        before = points.clone()
        run = _Run.begin(points, self._params.rho)
        run.note(rows, points[rows], *victim.loss_and_grad(points[rows], rows, loss))
        for step in range(steps):
            rows = victim.active()
            if not rows.numel():
                return
            here = points[rows]
            size = 2 * self._radius[rows] * run.share[rows].view(-1, 1, 1, 1, 1)
            ahead = self._ball(here - size * self._direction(run.grad[rows], rows), rows)
            if step:
                ahead.sub_(here).mul_(MOMENTUM).add_(here)
                ahead = self._ball(ahead.add_(here - before[rows], alpha=1 - MOMENTUM), rows)
            before[rows], points[rows] = here, ahead
            if step == steps - 1:
                victim.scores(ahead, rows)
                return
            run.note(rows, ahead, *victim.loss_and_grad(ahead, rows, loss))
            if step + 1 in self._checkpoints:
                again = run.halve(rows)
                points[again] = run.best[again]

    def _start(self, random: VideoRandom) -> Tensor:
        shape = self._clean.shape[1:]
        if self._threat.norm == "linf":
            noise = random.uniform(*shape, low=-1.0, high=1.0).to(self._clean)
            noise /= noise.abs().flatten(1).amax(dim=1).view(-1, 1, 1, 1, 1).clamp_min(1e-12)
        else:
            noise = unit_l2(random.normal(*shape).to(self._clean))
        return self._threat.project(self._clean + self._radius * noise, self._clean)


@dataclass
class _Run:
    """What one run knows of every video; tensors are ``[B]`` or of the videos' shape.

    Attributes:
        rho: share of steps that have to bring the loss down.
        loss: at the last point.
        grad: at the point to step from.
        best_loss: lowest loss so far.
        best: its point.
        best_grad: its gradient.
        share: of the first step's size.
        falls: steps since the last checkpoint in which the loss fell.
        asked: steps since the last checkpoint.
        checked: best loss at the last checkpoint.
        halved: whether the step was halved there.
    """

    rho: float
    loss: Tensor
    grad: Tensor
    best_loss: Tensor
    best: Tensor
    best_grad: Tensor
    share: Tensor
    falls: Tensor
    asked: Tensor
    checked: Tensor
    halved: Tensor

    @classmethod
    def begin(cls, points: Tensor, rho: float) -> _Run:
        """Return the state before any point is known."""
        nothing = points.new_full((len(points),), math.inf)
        return cls(
            rho=rho,
            loss=nothing.clone(),
            grad=torch.zeros_like(points),
            best_loss=nothing.clone(),
            best=points.clone(),
            best_grad=torch.zeros_like(points),
            share=torch.ones_like(nothing),
            falls=torch.full_like(nothing, -1),  # the start is no step
            asked=torch.full_like(nothing, -1),
            checked=nothing,
            halved=torch.zeros_like(nothing, dtype=torch.bool),
        )

    def note(self, rows: Tensor, points: Tensor, loss: Tensor, grad: Tensor, _: Tensor) -> None:
        """Take in what the victim said of ``points [b, ...]`` of videos ``rows``."""
        first = torch.isinf(self.checked[rows])
        self.falls[rows] += (loss < self.loss[rows]).to(loss.dtype)
        self.asked[rows] += 1
        self.loss[rows], self.grad[rows] = loss, grad
        better = loss < self.best_loss[rows]
        found = rows[better]
        self.best_loss[found], self.best[found] = loss[better], points[better]
        self.best_grad[found] = grad[better]
        self.checked[rows[first]] = loss[first]

    def halve(self, rows: Tensor) -> Tensor:
        """Halve steps that no longer pay, at a checkpoint, and return the videos concerned."""
        swings = self.falls[rows] < self.rho * self.asked[rows]
        stands = ~self.halved[rows] & (self.best_loss[rows] >= self.checked[rows])
        self.halved[rows] = swings | stands
        self.checked[rows] = self.best_loss[rows]
        self.falls[rows], self.asked[rows] = 0, 0
        again = rows[self.halved[rows]]
        self.share[again] /= 2
        self.loss[again], self.grad[again] = self.best_loss[again], self.best_grad[again]
        return again


def _towards_goal(goals: Goals, name: str) -> RowLoss:
    kind: Loss = "dlr" if name == "dlr-targeted" else name  # type: ignore[assignment]
    return lambda z, rows: goals.loss(z, rows, kind)


def _towards_others(victim: Victim, video: Tensor, goals: Goals, count: int) -> list[RowLoss]:
    """Return a targeted DLR loss for each of the likeliest wrong classes of the clean videos."""
    rows = victim.active()
    if not rows.numel():
        return []
    z = victim.scores(video[rows], rows)
    z = z.scatter(1, goals.labels[rows].unsqueeze(1), -math.inf)
    likely = z.topk(min(count, z.shape[1] - 1), dim=1).indices
    classes = goals.labels.new_zeros(len(video), likely.shape[1])
    classes[rows] = likely

    def towards(number: int) -> RowLoss:
        return lambda z, rows: dlr(z, goals.labels[rows], classes[rows, number])

    return [towards(number) for number in range(classes.shape[1])]
