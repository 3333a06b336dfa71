"""V-BAD: tentative directions, and NES for how each patch follows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.cells import Cells
from vcr_attacks.nes import NesSlope
from vcr_attacks.params.query import VbadParams
from vcr_attacks.query_loop import Queries, Steps, first_steps, follow, score_loss

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.randomness import VideoRandom
    from vcr_core.victim import Victim

_STEP_SHARE = 0.2
"""First step as a share of eps, as in the published code (0.01 of 0.05)."""


class Vbad(BaseVideoAttack):
    """V-BAD in the L-infinity ball, with random tentative directions.

    Jiang, Ma, Chen, Bailey, Jiang, "Black-box Adversarial Attacks on Video Recognition Models", ACM
    MM 2019, section 3.2: a tentative direction of signs is cut into patches of every frame, NES
    finds a weight for each patch, and a sign step follows the weighted direction. That leaves as
    many dimensions as there are patches.

    Costs ``1 + iterations * (samples + 1)`` queries. A pair is asked whole or not at all.

    Differs from the published method: there, the signs come from gradients of an ImageNet model's
    features; here they are random cells drawn anew for every step, so no other model is needed and
    less is known. A targeted search starts at the clean video and stays in the ball, not at a video
    of the target class. Probes are inside the ball, and ``sigma`` is one 8-bit level.
    """

    def __init__(self, params: VbadParams | None = None) -> None:
        self.params = params or VbadParams()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return perturbed videos within the threat's ball.

        Args:
            victim: score access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success.
            ctx: the threat model, of norm ``linf``, and one generator per video.

        Raises:
            BudgetExhausted: when no video has budget left; best points are with the victim.
        """
        params, threat = self.params, ctx.threat
        if threat.is_zero:
            return video.clone()
        queries = Queries(victim, goals, threat, video, score_loss(params.loss, goals))
        slope = NesSlope(
            queries,
            Cells(video, params.patches, colours=False),
            ctx.random,
            pairs=params.samples // 2,
            sigma=params.sigma,
            # Weights belong to the direction that they were found for, and that one changes.
            momentum=0.0,
            pattern=Tentative(video, ctx.random.child("tentative"), params.texture),
        )
        follow(
            queries,
            video,
            queries.look(video),
            Steps(
                first_steps(params.step, _STEP_SHARE, threat, video),
                least=params.least_step,
                plateau=params.plateau,
            ),
            slope,
            iterations=params.iterations,
            norm=threat.norm,
        )
        return victim.best()


class Tentative:
    """Random signs in cells of every frame, the same in all channels."""

    def __init__(self, video: Tensor, random: VideoRandom, grid: int | None) -> None:
        self._cells = Cells(video, grid, colours=False)
        self._random = random
        self._like = video

    def __call__(self, rows: Tensor) -> Tensor:
        """Return ``[b, T, C, H, W]`` of -1 and 1, other ones at every call."""
        signs = self._random.signs(*self._cells.shape, rows=rows).to(self._like)
        return self._cells.spread(signs)
