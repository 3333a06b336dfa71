"""A border around the video that stands still."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.optimiser_loop import Adam, optimise
from vcr_attacks.parametrised import Allowed, through
from vcr_attacks.params.perceptual import FramingParams
from vcr_attacks.sign_loop import answer

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.victim import Victim


class Framing(BaseVideoAttack):
    """Adversarial framing: the outermost pixels of every frame show one optimised border.

    Zajac, Zolna, Rostamzadeh, Pinheiro, "Adversarial Framing for Image and Video Classification",
    AAAI 2019 (workshop), section 3. A border pixel is ``sigmoid(a)``, the same in all frames, and
    Adam minimises the loss over ``a``, from grey. The inside stays bit for bit. The paper's border
    is one for all videos and lies around the frame; this one is made for each video and overwrites
    its edge, so that the size stays. Costs at most ``steps`` gradients and one forward pass; uses
    no randomness.

    A border that stands still carries no motion, and a model of frame differences does not see it;
    ``scope = "frame"`` gives every frame its own.
    """

    def __init__(self, params: FramingParams | None = None) -> None:
        self.params = params or FramingParams()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return framed videos.

        Args:
            victim: white-box access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success; the victim minimises their loss.
            ctx: the threat model, of norm ``none``; frames and region are kept.

        Raises:
            BudgetExhausted: when no video has budget left; best points are with the victim.
        """
        params = self.params
        start = torch.zeros_like(video if params.scope == "frame" else video[:, :1])
        inside = interior(video, params.width)
        allowed = Allowed(ctx.threat, video)

        def show(border: Tensor, rows: Tensor) -> Tensor:
            return allowed(video[rows].where(inside, border.sigmoid()), rows)

        last = optimise(
            victim,
            start,
            through(victim, show, params.loss),
            show,
            steps=params.steps,
            adam=Adam(start, params.lr),
            bound=lambda border, _rows: border,
        )
        return answer(victim, last, params.keep)


def interior(video: Tensor, width: int) -> Tensor:
    """Return ``[H, W]`` bool: the pixels at least ``width`` away from every edge."""
    height, across = video.shape[-2:]
    inside = torch.zeros(height, across, dtype=torch.bool, device=video.device)
    inside[width : max(width, height - width), width : max(width, across - width)] = True
    return inside
