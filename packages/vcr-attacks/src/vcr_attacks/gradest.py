"""Geo-TRAP: slopes estimated along noise that moves as simple motions do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.motion_noise import NoiseSource, WarpedNoise
from vcr_attacks.params.query import GradestParams, MeSamplerParams
from vcr_attacks.query_loop import Queries, Steps, first_steps, follow, score_loss

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.threat import ThreatModel
    from vcr_core.victim import Victim

_STEP_SHARE = 0.6375
"""First step as a share of eps, as in the published code (0.025 of 10/255)."""


def unit_frames(videos: Tensor) -> Tensor:
    """Return each frame of ``[b, T, C, H, W]`` at a root mean square of 1; zeros stay zeros."""
    size = videos.flatten(2).square().mean(dim=2).sqrt().view(*videos.shape[:2], 1, 1, 1)
    return videos / size.where(size > 0, size.new_ones(()))


class TrackedSlope:
    """A slope that is carried along and corrected by one pair of queries a time.

    Args:
        queries: how to ask.
        noise: what the pairs differ by.
        spread: weight of the noise beside the slope so far (``delta``).
        probe: root mean square of a probe's offset in every frame, in the pixel range.
        rate: weight of a correction (``eta``).
    """

    def __init__(
        self, queries: Queries, noise: NoiseSource, *, spread: float, probe: float, rate: float
    ) -> None:
        self._queries = queries
        self._noise = noise
        self._spread = spread
        self._probe = probe
        self._rate = rate
        # The published step divides by the length of a probe in a frame, not by its mean square.
        self._length = probe * queries.clean[0, 0].numel() ** 0.5
        self._slope = torch.zeros_like(queries.clean)

    def __call__(self, points: Tensor, rows: Tensor) -> Tensor:
        """Return the corrected slopes, ``[b, T, C, H, W]``; two queries a video."""
        noise = self._noise.draw(rows)
        slope = self._slope[rows]
        ahead, behind = (
            points + self._probe * unit_frames(self._queries.masked(slope.add(noise, alpha=side)))
            for side in (self._spread, -self._spread)
        )
        change = self._queries.difference(ahead, behind, rows)
        weight = self._rate * change / (self._spread * self._length)
        self._slope[rows] = slope + weight.view(-1, 1, 1, 1, 1) * noise
        return self._slope[rows]


def track(
    queries: Queries,
    noise: NoiseSource,
    threat: ThreatModel,
    params: GradestParams | MeSamplerParams,
    share: float,
) -> Tensor:
    """Walk along a tracked slope from the clean videos and return the best points.

    Args:
        queries: how to ask.
        noise: what the pairs of queries differ by.
        threat: the threat model.
        params: of the attack.
        share: first step as a share of eps, where the step is ``auto``.
    """
    clean = queries.clean
    slope = TrackedSlope(queries, noise, spread=params.spread, probe=params.probe, rate=params.rate)
    losses = queries.look(clean)
    steps = Steps(first_steps(params.step, share, threat, clean))
    follow(queries, clean, losses, steps, slope, iterations=params.iterations, norm=threat.norm)
    return queries.victim.best()


class Gradest(BaseVideoAttack):
    """Geo-TRAP in the L-infinity ball.

    Li, Aich, Zhu, Asif, Song, Krishnamurthy, Roy-Chowdhury, "Adversarial Attacks on Black Box Video
    Classifiers: Leveraging the Power of Geometric Transformations", NeurIPS 2021, algorithm 1: a
    slope is kept and corrected along one noise frame warped by simple random motions, since
    gradients of video models move with the content; then a sign step.

    Costs ``1 + 3 * iterations`` queries: two probes and a look at the new point.

    Differs from the published code: probes are inside the ball and of one 8-bit level in root mean
    square (the published length of 0.1 a frame is a tenth of a level, which rounding removes);
    every look counts; pixels stay in range.
    """

    def __init__(self, params: GradestParams | None = None) -> None:
        self.params = params or GradestParams()

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
        if ctx.threat.is_zero:
            return video.clone()
        loss = score_loss(self.params.loss, goals, "flicker")
        queries = Queries(victim, goals, ctx.threat, video, loss)
        noise = WarpedNoise(video, ctx.random, self.params.motion)
        return track(queries, noise, ctx.threat, self.params, _STEP_SHARE)
