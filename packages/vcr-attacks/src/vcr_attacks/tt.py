"""Temporal translation: a transfer attack that averages gradients of shifted videos."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.mifgsm import Momentum
from vcr_attacks.params.gradient import TtParams
from vcr_attacks.sign_loop import Ball, step_sizes

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.victim import LossFn, Victim


class TemporalTranslation(BaseVideoAttack):
    """TT in the L-infinity ball, on a surrogate.

    Wei, Chen, Wu, Jiang, "Boosting the Transferability of Video Adversarial Examples via Temporal
    Translation", AAAI 2022, equation 5: the frames are rolled by each shift, the surrogate's
    gradient there is rolled back, and the weighted sum decides the sign of the step. Shifts past
    the ends of the video wrap around. Movements that the surrogate places at other moments than
    the victim then weigh less.

    The model under attack is never asked, and nothing stops early. Costs ``steps * kernel``
    gradients of the surrogate; uses no randomness unless ``shifts = "random"``.
    """

    def __init__(self, params: TtParams | None = None) -> None:
        self.params = params or TtParams()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return the last points of the descent on the surrogate.

        Args:
            victim: not asked.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success; the surrogate minimises their loss.
            ctx: the threat model, of norm ``linf``, and the surrogate.
        """
        params, threat = self.params, ctx.threat
        if threat.is_zero:
            return video.clone()
        surrogate = ctx.surrogate(params.surrogate)
        weights = kernel(params.kernel, params.weights)
        rows = torch.arange(len(video), device=video.device)
        ball = Ball(threat, video)
        even = params.step == "even"
        sizes = step_sizes("auto" if params.step == "even" else params.step, params.steps, threat,
                           video)  # fmt: skip
        if even:
            sizes = sizes / 2.5
        momentum = Momentum(video, params.decay, normalize=params.decay > 0, scope="frame")
        points = video.clone()
        for _ in range(params.steps):
            shifts = self._shifts(video, ctx)
            grad = _shifted_gradient(surrogate, points, shifts, weights, params.loss)
            points = ball(points - sizes * momentum(grad, rows), rows)
        return points

    def _shifts(self, video: Tensor, ctx: AttackContext) -> Tensor:
        """Return shifts ``[B, kernel]`` in frames."""
        count, frames = len(video), video.shape[1]
        half = self.params.kernel // 2
        near = torch.arange(-half, half + 1).expand(count, -1)
        if self.params.shifts == "remote":
            return near + near.sign() * max(frames // 2 - 1, 0)
        if self.params.shifts == "random":
            drawn = ctx.random.integers(0, frames, self.params.kernel).cpu()
            drawn[:, half] = 0
            return drawn
        return near


def kernel(length: int, shape: str) -> list[float]:
    """Return weights of ``length`` shifts that sum to 1; the middle one belongs to shift 0."""
    half = length // 2
    if half == 0 or shape == "uniform":
        return [1 / length] * length
    if shape == "linear":
        raw = [1 - abs(s) / (half + 1) for s in range(-half, half + 1)]
    else:
        raw = [math.exp(-0.5 * (3 * s / half) ** 2) for s in range(-half, half + 1)]
    return [value / sum(raw) for value in raw]


def _shifted_gradient(
    surrogate: Victim, points: Tensor, shifts: Tensor, weights: list[float], loss: LossFn
) -> Tensor:
    """Return the weighted sum of gradients at rolled videos, each rolled back."""
    total = torch.zeros_like(points)
    for number, weight in enumerate(weights):
        by = shifts[:, number].tolist()
        grad = surrogate.loss_and_grad(_roll(points, by), loss=loss).grad
        total += weight * _roll(grad, [-s for s in by])
    return total


def _roll(videos: Tensor, by: list[int]) -> Tensor:
    """Return each video with its frames moved ``by`` places, the last ones to the front."""
    if len(set(by)) == 1:
        return videos.roll(by[0], dims=1)
    return torch.stack([v.roll(s, dims=0) for v, s in zip(videos, by, strict=True)])
