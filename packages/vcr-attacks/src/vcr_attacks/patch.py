"""A square patch that stands still in the video."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.optimiser_loop import Adam, optimise
from vcr_attacks.parametrised import Allowed, through
from vcr_attacks.params.perceptual import PatchParams
from vcr_attacks.sign_loop import answer

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.randomness import VideoRandom
    from vcr_core.victim import Victim


class Patch(BaseVideoAttack):
    """Adversarial patch: one square of each video, the same in all frames, is optimised freely.

    Brown, Mane, Roy, Abadi, Gilmer, "Adversarial Patch", NeurIPS 2017 (workshop), equation (1),
    with one video and one place in the expectation: the patch is made for each video and for the
    place where it lies, so there is nothing to average over. It is no universal patch that could be
    printed. A pixel is ``sigmoid(a)``; Adam minimises the loss over ``a``, from grey. Costs at most
    ``steps`` gradients and one forward pass.

    A patch that stands still carries no motion, and a model of frame differences does not see it;
    ``scope = "frame"`` gives every frame its own pixels, at the same place.
    """

    def __init__(self, params: PatchParams | None = None) -> None:
        self.params = params or PatchParams()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return videos with a patch.

        Args:
            victim: white-box access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success; the victim minimises their loss.
            ctx: the threat model, of norm ``none``, whose frames and region are kept, and one
                generator per video.

        Raises:
            BudgetExhausted: when no video has budget left; best points are with the victim.
        """
        params = self.params
        # A variable for every place of the frame: those outside of the square have no gradient.
        start = torch.zeros_like(video if params.scope == "frame" else video[:, :1])
        covered = self._squares(video, ctx.random)
        allowed = Allowed(ctx.threat, video)

        def show(patch: Tensor, rows: Tensor) -> Tensor:
            return allowed(patch.sigmoid().where(covered[rows], video[rows]), rows)

        last = optimise(
            victim,
            start,
            through(victim, show, params.loss),
            show,
            steps=params.steps,
            adam=Adam(start, params.lr),
            bound=lambda patch, _rows: patch,
        )
        return answer(victim, last, params.keep)

    def _squares(self, video: Tensor, random: VideoRandom) -> Tensor:
        """Return ``[B, 1, 1, H, W]`` bool: the pixels under each video's patch."""
        height, width = video.shape[-2:]
        side = patch_side(self.params.area, height, width)
        corners = patch_corners(video, side, self.params.place, random)
        rows = torch.arange(height, device=video.device).view(1, -1, 1)
        columns = torch.arange(width, device=video.device).view(1, 1, -1)
        top, left = corners[:, 0].view(-1, 1, 1), corners[:, 1].view(-1, 1, 1)
        covered = (rows >= top) & (rows < top + side) & (columns >= left) & (columns < left + side)
        return covered[:, None, None]


def patch_side(area: float, height: int, width: int) -> int:
    """Return the side of the square that covers ``area`` of a frame, in whole pixels."""
    return int(min(max(1, round((area * height * width) ** 0.5)), height, width))


def patch_corners(video: Tensor, side: int, place: str, random: VideoRandom) -> Tensor:
    """Return ``[B, 2]`` int64, top and left of each video's square.

    Args:
        video: ``[B, T, C, H, W]``.
        side: of the square, in pixels.
        place: ``random`` for a place that each video draws, else the middle.
        random: one generator per video.
    """
    height, width = video.shape[-2:]
    free = video.new_tensor([height - side + 1, width - side + 1])
    if place == "random":
        return (random.uniform(2).to(video) * free).long()
    return ((free - 1) / 2).long().expand(len(video), 2)
