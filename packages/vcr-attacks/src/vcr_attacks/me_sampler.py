"""Motion-excited sampler: slopes estimated along noise that moves as the video does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.block_motion import origins
from vcr_attacks.gradest import track
from vcr_attacks.params.query import MeSamplerParams
from vcr_attacks.query_loop import Queries, score_loss

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.randomness import VideoRandom
    from vcr_core.victim import Victim

_STEP_SHARE = 0.025 / 0.03
"""First step as a share of eps, as in the published code."""


class CarriedNoise:
    """One Gaussian frame a video, carried along by the motion of the clean video.

    Args:
        video: ``[B, T, C, H, W]``, clean.
        random: one generator per video.
        block: see :func:`~vcr_attacks.block_motion.displacements`.
        reach: likewise.
    """

    def __init__(self, video: Tensor, random: VideoRandom, block: int, reach: int) -> None:
        self._random = random
        self._frame = video.shape[2:]
        self._like = video
        self._origins = torch.stack([origins(one, block, reach) for one in video])

    def draw(self, rows: Tensor) -> Tensor:
        """Return ``[b, T, C, H, W]`` for videos ``rows``."""
        noise = self._random.normal(*self._frame, rows=rows).to(self._like).flatten(2)
        places = self._origins[rows].flatten(1).unsqueeze(1).expand(-1, self._frame[0], -1)
        carried = noise.gather(2, places).view(*noise.shape[:2], *self._origins.shape[1:])
        return carried.transpose(1, 2)


class MeSampler(BaseVideoAttack):
    """Motion-excited sampler (V-Attack) in the L-infinity ball.

    Zhang, Zhu, Zhu, Yang, "Motion-Excited Sampler: Video Adversarial Attack with Sparked Prior",
    ECCV 2020, section 3: as Geo-TRAP (``gradest``), but the noise of a frame is that of the frame
    before, moved as the video's content moves. A video that stands still gets noise that does.

    Costs ``1 + 3 * iterations`` queries: two probes and a look at the new point.

    Differs from the published code: motion is found by block matching on the frames under attack,
    not read from a compressed file; probes are inside the ball and of one 8-bit level in root mean
    square; every look counts; the loss is the margin.
    """

    def __init__(self, params: MeSamplerParams | None = None) -> None:
        self.params = params or MeSamplerParams()

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
        params = self.params
        if ctx.threat.is_zero:
            return video.clone()
        queries = Queries(victim, goals, ctx.threat, video, score_loss(params.loss, goals))
        noise = CarriedNoise(video, ctx.random, params.block, params.reach)
        return track(queries, noise, ctx.threat, params, _STEP_SHARE)
