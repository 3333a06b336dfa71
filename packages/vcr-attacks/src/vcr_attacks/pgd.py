"""Projected gradient descent with random starts and restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.params.gradient import PgdParams
from vcr_attacks.sign_loop import Ball, answer, descend, steepest, step_sizes, unit_l2

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.randomness import VideoRandom
    from vcr_core.threat import ThreatModel
    from vcr_core.victim import Victim

LEAST_SHARE = 0.25
"""Smallest ``auto`` step as a share of eps: the 2 of 8 levels of published evaluations."""


def random_point(threat: ThreatModel, clean: Tensor, random: VideoRandom) -> Tensor:
    """Return a uniform random point of the ball around each video, clamped to the pixel range.

    Args:
        threat: of norm ``linf`` or ``l2``.
        clean: ``[B, T, C, H, W]``.
        random: one generator per video.
    """
    shape = clean.shape[1:]
    if threat.norm == "linf":
        offset = random.uniform(*shape, low=-1.0, high=1.0).to(clean) * threat.radius(clean)
    else:
        # Uniform in a ball of n dimensions: a random direction at a distance of U^(1/n).
        distance = random.uniform().to(clean).pow(1 / shape.numel()) * threat.radius(clean)
        offset = unit_l2(random.normal(*shape).to(clean)) * distance.view(-1, 1, 1, 1, 1)
    return threat.project(clean + offset, clean)


class Pgd(BaseVideoAttack):
    """PGD in the L-infinity or L2 ball.

    Madry, Makelov, Schmidt, Tsipras, Vladu, ICLR 2018, section 2.1: a random start in the ball,
    then steps of steepest descent with projection. In ``linf`` these are sign steps as in I-FGSM,
    in ``l2`` the gradient divided by its norm. Restarts go on for videos that are not broken yet;
    the best point of all runs is kept. Costs at most ``restarts * steps`` gradients and
    ``restarts`` forward passes.

    A step of ``auto`` is a quarter of the radius however many steps there are, as in the paper's
    section 5 (2 of 8 levels) and in PGD-50-10 of Wong, Rice, Kolter, ICLR 2020: more steps should
    search longer. With ``2.5 * eps / steps`` they only search more finely, and 50 of them from a
    random start end in worse minima than 20 of I-FGSM.
    """

    def __init__(self, params: PgdParams | None = None) -> None:
        self.params = params or PgdParams()

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
        """
        params, threat = self.params, ctx.threat
        if threat.is_zero:
            return video.clone()
        direction = steepest(threat.norm, threat.mask(video))
        ball = Ball(threat, video)
        sizes = step_sizes(params.step, params.steps, threat, video)
        if params.step == "auto":
            sizes = sizes * max(1.0, LEAST_SHARE * params.steps / 2.5)
        last = video
        for restart in range(params.restarts):
            if not victim.active().numel():
                break
            if params.random_start:
                # A stream of its own: one restart more leaves those before it as they were.
                last = random_point(threat, video, ctx.random.child(f"restart-{restart}"))
            last = descend(
                victim,
                last,
                ball,
                steps=params.steps,
                sizes=sizes,
                direction=direction,
                loss=params.loss,
            )
        return answer(victim, last, params.keep)
