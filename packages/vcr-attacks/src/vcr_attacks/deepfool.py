"""DeepFool: to the nearest boundary of the linearised classifier, again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.params.gradient import DeepFoolParams
from vcr_attacks.sign_loop import Ball
from vcr_attacks.tangents import cross

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.victim import Victim


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
        cross(
            victim,
            video,
            goals.labels,
            Ball(threat, video),
            classes=self.params.classes,
            overshoot=self.params.overshoot,
            steps=self.params.steps,
            linf=threat.norm == "linf",
        )
        return victim.best()
