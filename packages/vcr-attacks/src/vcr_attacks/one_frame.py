"""One-frame attack: I-FGSM on a single frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.errors import UsageError
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.frames import frame_saliency, free_frames
from vcr_attacks.params.gradient import OneFrameParams
from vcr_attacks.sign_loop import Ball, Direction, descend, step_sizes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.threat import ThreatModel
    from vcr_core.victim import Victim


class OneFrame(BaseVideoAttack):
    """One-frame attack in the L-infinity ball.

    Hwang, Kim, Lee, "Just One Moment: Structural Vulnerability of Deep Action Recognition against
    One Frame Attack", ICCV 2021, section 3: I-FGSM that moves one frame and leaves all others as
    they are. ``frame = "best"`` tries every frame and keeps the best result, ``"gradient"`` takes
    the frame with the largest mean absolute gradient, a number that frame. ``threat.frames``
    limits the choice.

    Costs ``steps`` gradients and one forward pass, as many times as there are frames with
    ``best``, and one gradient more with ``gradient``. Uses no randomness.
    """

    def __init__(self, params: OneFrameParams | None = None) -> None:
        self.params = params or OneFrameParams()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return videos of which at most one frame is another.

        Args:
            victim: white-box access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success; the victim minimises their loss.
            ctx: the threat model, of norm ``linf``.

        Raises:
            BudgetExhausted: when no video has budget left; best points are with the victim.
            UsageError: for a frame that the video or the threat does not have.
        """
        params, threat = self.params, ctx.threat
        if threat.is_zero:
            return video.clone()
        ball = Ball(threat, video)
        sizes = step_sizes(params.step, params.steps, threat, video)
        for chosen in self._choices(victim, video, threat):
            free = torch.zeros(video.shape[:2], device=video.device)
            free.scatter_(1, chosen.unsqueeze(1), 1.0)
            descend(
                victim,
                video,
                ball,
                steps=params.steps,
                sizes=sizes,
                direction=_signs_on(free.view(*free.shape, 1, 1, 1)),
                loss=params.loss,
            )
        return victim.best()

    def _choices(self, victim: Victim, video: Tensor, threat: ThreatModel) -> Iterator[Tensor]:
        """Yield frames to try, ``[B]`` each."""
        frames = free_frames(threat, video)
        everyone = torch.arange(len(video), device=video.device)
        if self.params.frame == "gradient":
            yield frame_saliency(victim, video, everyone, frames, self.params.loss).argmax(dim=1)
            return
        if isinstance(self.params.frame, int):
            if self.params.frame not in frames:
                raise UsageError(
                    f"attack.frame = {self.params.frame}: the frames that may change are "
                    f"{', '.join(map(str, frames))}"
                )
            frames = [self.params.frame]
        for frame in frames:
            yield torch.full_like(everyone, frame)


def _signs_on(mask: Tensor) -> Direction:
    """Return signs of gradients where ``mask [B, T, 1, 1, 1]`` is 1, zeros elsewhere."""
    return lambda grad, rows: grad.sign_().mul_(mask[rows])
