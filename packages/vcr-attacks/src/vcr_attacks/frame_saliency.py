"""Frame saliency attack: frames fall one by one, the most salient first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.frames import free_frames, saliency
from vcr_attacks.params.gradient import FrameSaliencyParams
from vcr_attacks.sign_loop import Ball

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.victim import Victim


class FrameSaliency(BaseVideoAttack):
    """Frame saliency attack in the L-infinity ball.

    Inkawhich, Inkawhich, Chen, Li, "Adversarial Attacks for Optical Flow-Based Action Recognition
    Classifiers", arXiv 1811.11875: frames in the order of their mean absolute gradient are moved
    by ``eps`` against its sign, one more at a time, until the goal is met. With ``refresh`` the
    gradient is taken anew after each frame.

    Costs one gradient and as many forward passes as frames are moved; with ``refresh`` gradients
    in place of the forward passes. Uses no randomness.
    """

    def __init__(self, params: FrameSaliencyParams | None = None) -> None:
        self.params = params or FrameSaliencyParams()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return videos with as few moved frames as met the goal in this order.

        Args:
            victim: white-box access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success; the victim minimises their loss.
            ctx: the threat model, of norm ``linf``.

        Raises:
            BudgetExhausted: when no video has budget left; best points are with the victim.
        """
        threat = ctx.threat
        if threat.is_zero:
            return video.clone()
        frames = free_frames(threat, video)
        ball = Ball(threat, video)
        radius = threat.radius(video).expand(len(video), -1, 1, 1, 1)
        points = video.clone()
        untouched = torch.ones(video.shape[:2], dtype=torch.bool, device=video.device)
        everyone = torch.arange(len(video), device=video.device)
        grad = victim.loss_and_grad(video, everyone, self.params.loss).grad
        for number in range(len(frames)):
            rows = victim.active()
            if not rows.numel():
                break
            order = saliency(grad[rows], frames).masked_fill(~untouched[rows], -torch.inf)
            frame = order.argmax(dim=1)
            untouched[rows, frame] = False
            ahead = ball(video[rows] - radius[rows] * grad[rows].sign(), rows)
            points[rows, frame] = ahead[torch.arange(len(rows)), frame]
            if self.params.refresh and number + 1 < len(frames):
                grad[rows] = victim.loss_and_grad(points[rows], rows, self.params.loss).grad
            else:
                victim.scores(points[rows], rows)
        return victim.best()
