"""Iterative fast gradient sign method."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.params.gradient import IfgsmParams
from vcr_attacks.sign_loop import Ball, answer, descend, steepest, step_sizes

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.victim import Victim


class Ifgsm(BaseVideoAttack):
    """I-FGSM, also called the basic iterative method (BIM).

    Kurakin, Goodfellow, Bengio, "Adversarial examples in the physical world", ICLR workshop 2017,
    section 2.2: ``x <- project(x - step * sign(grad L(x)))`` from the clean video, where the
    projection clamps to the ball and to the pixel range. Costs at most ``steps`` gradients and one
    forward pass; uses no randomness.
    """

    def __init__(self, params: IfgsmParams | None = None) -> None:
        self.params = params or IfgsmParams()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return perturbed videos within the threat's ball.

        Args:
            victim: white-box access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success; the victim minimises their loss.
            ctx: the threat model, of norm ``linf``.

        Raises:
            BudgetExhausted: when no video has budget left; best points are with the victim.
        """
        if ctx.threat.is_zero:
            return video.clone()
        last = descend(
            victim,
            video,
            Ball(ctx.threat, video),
            steps=self.params.steps,
            sizes=step_sizes(self.params.step, self.params.steps, ctx.threat, video),
            direction=steepest(ctx.threat.norm),
            loss=self.params.loss,
        )
        return answer(victim, last, self.params.keep)
