"""Fast gradient sign method: one step to the edge of the ball."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.params.gradient import FgsmParams
from vcr_attacks.sign_loop import Ball, answer, descend, steepest, unit_l2

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.victim import Victim


class Fgsm(BaseVideoAttack):
    """FGSM in the L-infinity ball, and its L2 form, the fast gradient method.

    Goodfellow, Shlens, Szegedy, ICLR 2015, section 4: ``x - eps * sign(grad L(x))``, projected. In
    ``l2`` the step is ``eps * grad L / ||grad L||``. With ``random_start`` it is R+FGSM (Tramèr et
    al., ICLR 2018, equation 7): ``eps / 2`` in a random direction, ``eps / 2`` along the gradient
    there. Costs one gradient and one forward pass.
    """

    def __init__(self, params: FgsmParams | None = None) -> None:
        self.params = params or FgsmParams()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return perturbed videos within the threat's ball.

        Args:
            victim: white-box access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success; the victim minimises their loss.
            ctx: the threat model, of norm ``linf`` or ``l2``.

        Raises:
            BudgetExhausted: when no video has budget left; best points are with the victim.
            IncompatibleComponents: for another norm.
        """
        threat = ctx.threat
        if threat.is_zero:
            return video.clone()
        direction = steepest(threat.norm, threat.mask(video))
        radius = threat.radius(video)
        sizes = radius.view(*radius.shape, *(1,) * (video.ndim - radius.ndim))
        sizes = sizes.expand(len(video), *sizes.shape[1:])
        ball = Ball(threat, video)
        start = video
        if self.params.random_start:
            sizes = sizes / 2
            noise = ctx.random.normal(*video.shape[1:]).to(video)
            away = noise.sign_() if threat.norm == "linf" else unit_l2(noise)
            start = threat.project(video + sizes * away, video)
        last = descend(
            victim,
            start,
            ball,
            steps=1,
            sizes=sizes,
            direction=direction,
            loss=self.params.loss,
        )
        return answer(victim, last, self.params.keep)
