"""The attack of Carlini and Wagner: the smallest L2 change that succeeds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from vcr_core.losses import margin
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.optimiser_loop import Adam
from vcr_attacks.params.gradient import CwParams
from vcr_attacks.sign_loop import Ball
from vcr_attacks.smallest import Smallest, affordable, l2

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.victim import Victim

INSIDE = 1 - 1e-6
"""Pixels are shrunk by this about mid-grey: the arc tangent of black and white is infinite."""

PROGRESS = 0.9999
"""A round goes on while a tenth of its steps lowers the objective below this share of it."""


class Cw(BaseVideoAttack):
    """C&W in L2, a minimal-norm attack.

    Carlini & Wagner, IEEE S&P 2017, section VI.A: minimise ``||x' - x||^2 + c * f(x')`` over ``w``,
    ``x' = (tanh(w) + 1) / 2``, where ``f`` is the margin (objective f6), cut off at ``-kappa``. A
    search over ``c``, of each video its own, finds the smallest weight that succeeds. The answer is
    the success of least L2 norm, measured on the video as it would be stored.

    Costs at most ``rounds * steps`` gradients: the search goes on after the first success, whatever
    the run's stop rule says. With norm ``none`` nothing but the pixel range binds; with ``l2``
    every point is projected into the ball. Uses no randomness.
    """

    def __init__(self, params: CwParams | None = None) -> None:
        self.params = params or CwParams()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return the smallest successful change, or the best point where nothing succeeded.

        Args:
            victim: white-box access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success.
            ctx: the threat model, of norm ``none`` or ``l2``.

        Raises:
            BudgetExhausted: if the budget does not hold a single gradient.
        """
        if ctx.threat.is_zero:
            return video.clone()
        found = Smallest(video, ctx.threat, l2)
        ball = Ball(ctx.threat, video)
        count = len(video)
        weight = video.new_full((count,), self.params.weight)
        low, high = video.new_zeros(count), video.new_full((count,), math.inf)
        for _ in range(self.params.rounds):
            won = self._round(victim, video, goals, ball, weight, found)
            high = high.where(~won, high.minimum(weight))
            low = low.where(won, low.maximum(weight))
            weight = torch.where(high.isinf(), weight * 10, (low + high) / 2)
        return found.answer(victim)

    def _round(
        self,
        victim: Victim,
        video: Tensor,
        goals: Goals,
        ball: Ball,
        weight: Tensor,
        found: Smallest,
    ) -> Tensor:
        """Minimise with fixed weights ``[B]`` and return which videos had a success ``[B]``."""
        params = self.params

        def success(z: Tensor, rows: Tensor) -> Tensor:
            targets = None if goals.targets is None else goals.targets[rows]
            return margin(z, goals.labels[rows], targets, kappa=params.kappa)

        hidden = torch.atanh((2 * video - 1) * INSIDE)
        adam = Adam(hidden, params.lr)
        won = torch.zeros(len(video), dtype=torch.bool, device=video.device)
        last = video.new_full((len(video),), math.inf)
        going = torch.arange(len(video), device=video.device)
        pause = max(params.steps // 10, 1)
        for step in range(params.steps):
            going = affordable(victim, going)
            if not going.numel():
                break
            curve = hidden[going].tanh()
            shown = ball((curve + 1) / 2, going)
            value, grad, z = victim.loss_and_grad(shown, going, success)
            here = goals.achieved(z, going) & (value <= -params.kappa)
            won[going] |= here
            found.offer(shown[here], going[here])
            away = shown - video[going]
            grad = grad * weight[going].view(-1, 1, 1, 1, 1) + 2 * away
            hidden[going] -= adam.move(grad * (1 - curve * curve) / 2, going)
            if params.abort_early and step % pause == 0:
                total = away.square().flatten(1).sum(dim=1) + weight[going] * value
                moving = total <= PROGRESS * last[going]
                last[going] = total
                going = going[moving]
        return won
