"""Bandits with time and data priors: a slope in few cells, learned over the steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.cells import Cells
from vcr_attacks.params.query import BanditsParams
from vcr_attacks.query_loop import Queries, Steps, first_steps, follow, score_loss

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.randomness import VideoRandom
    from vcr_core.victim import Victim

_STEP_SHARE = 0.2
"""First step as a share of eps, as in the published code (0.01 of 0.05)."""
_FORGET = 0.1
_SURE = 8.0
"""Bound of the prior before its tanh, which keeps it below 1 in float32."""


class PriorSlope:
    """A prior in (-1, 1) per cell, moved by exponentiated gradients.

    ``v <- (v e^g - ...)`` of the paper is ``tanh(atanh(v) + g)``, which does not overflow.

    Args:
        queries: how to ask.
        cells: what shares one value of the prior.
        random: one generator per video.
        exploration: size of the noise beside the prior's.
        probe: root mean square of a probe's offset, in the pixel range.
        rate: how far a pair of ordinary weight moves the prior.
    """

    def __init__(
        self,
        queries: Queries,
        cells: Cells,
        random: VideoRandom,
        *,
        exploration: float,
        probe: float,
        rate: float,
    ) -> None:
        self._queries = queries
        self._cells = cells
        self._random = random
        self._exploration = exploration
        self._probe = probe
        self._rate = rate
        batch = len(queries.clean)
        self._belief = queries.clean.new_zeros(batch, *cells.shape)
        self._usual = queries.clean.new_zeros(batch)

    def __call__(self, points: Tensor, rows: Tensor) -> Tensor:
        """Return the prior after one more pair, ``[b, T, C, H, W]``; two queries a video."""
        prior = _unit(self._belief[rows].tanh())
        noise = self._random.normal(*self._cells.shape, rows=rows).to(points)
        ahead, behind = (
            points + self._probe * _unit(self._cells.spread(prior + side * _unit(noise)))
            for side in (self._exploration, -self._exploration)
        )
        change = self._queries.difference(ahead, behind, rows)
        weight = self._rate * change / self._scale(change.abs(), rows)
        belief = self._belief[rows] + weight.view(-1, 1, 1, 1, 1) * noise
        self._belief[rows] = belief.clamp(-_SURE, _SURE)
        return self._cells.spread(self._belief[rows].tanh())

    def _scale(self, size: Tensor, rows: Tensor) -> Tensor:
        """Return the usual size of a change so far, 1 where nothing ever changed."""
        usual = self._usual[rows]
        usual = torch.where(usual > 0, (1 - _FORGET) * usual + _FORGET * size, size)
        self._usual[rows] = usual
        return usual.where(usual > 0, usual.new_ones(()))


def _unit(videos: Tensor) -> Tensor:
    size = videos.flatten(1).square().mean(dim=1).sqrt().view(-1, 1, 1, 1, 1)
    return videos / size.where(size > 0, size.new_ones(()))


class Bandits(BaseVideoAttack):
    """Bandits-TD in the L-infinity ball.

    Ilyas, Engstrom, Madry, "Prior Convictions: Black-Box Adversarial Attacks with Bandits and
    Priors", ICLR 2019, algorithms 2 and 3: successive gradients resemble each other (prior over
    time) and so do neighbouring pixels (prior over data), so a coarse slope is carried along and
    corrected by one pair of queries a step. Groups of frames (``times``) may share their values
    too, but what stands still carries no motion: of 15 videos of the generated data set (Linf
    8/255, ``tiny-r3d``) 4 broke within 300 queries with a slope per frame, 1 with 4 groups of
    frames.

    Costs ``1 + 3 * iterations`` queries: two probes and a look at the new point.

    Differs from the published code: every look counts; probes are inside the ball and of one 8-bit
    level in root mean square; the noise has the prior's size, or else rounding would hide what the
    two probes of a pair differ by; changes of the loss are divided by their running mean, so that
    ``rate`` does not depend on the loss's scale.
    """

    def __init__(self, params: BanditsParams | None = None) -> None:
        self.params = params or BanditsParams()

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
        slope = PriorSlope(
            queries,
            Cells(video, params.grid, groups=params.times),
            ctx.random,
            exploration=params.exploration,
            probe=params.probe,
            rate=params.rate,
        )
        follow(
            queries,
            video,
            queries.look(video),
            Steps(first_steps(params.step, _STEP_SHARE, threat, video)),
            slope,
            iterations=params.iterations,
            norm=threat.norm,
        )
        return victim.best()
