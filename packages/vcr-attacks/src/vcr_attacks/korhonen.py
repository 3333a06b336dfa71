"""Perturbations that follow a map of spatial activity, where the eye sees them least."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from vcr_core.errors import IncompatibleComponents
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.optimiser_loop import Adam, optimise
from vcr_attacks.params.perceptual import KorhonenParams
from vcr_attacks.sign_loop import Ball, answer

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.victim import Victim

    from vcr_attacks.optimiser_loop import Rows

_LUMA = (0.299, 0.587, 0.114)


class Korhonen(BaseVideoAttack):
    """Adam steps scaled by a map of spatial activity.

    Korhonen & You, "Adversarial Attacks Against Blind Image Quality Assessment Models", QoEVMA
    2022, section 3, for classifiers of videos: the map of every clean frame (Sobel energy of the
    luma, divided by its maximum, dilated) scales what each pixel may move. Costs at most ``steps``
    gradients and one forward pass; uses no randomness.

    The paper multiplies the gradient by the map, but Adam divides every pixel by the size of its
    own gradients, so a constant factor cancels except where it is 0. The default multiplies Adam's
    step instead; ``map_on = "gradient"`` is the published order. A frame without edges is changed
    everywhere, a flat part of another frame nowhere.
    """

    def __init__(self, params: KorhonenParams | None = None) -> None:
        self.params = params or KorhonenParams()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return perturbed videos.

        Args:
            victim: white-box access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success; the victim minimises their loss.
            ctx: the threat model, of norm ``none`` or ``linf``.

        Raises:
            BudgetExhausted: when no video has budget left; best points are with the victim.
            IncompatibleComponents: for ``map_on = "eps"`` without a radius.
        """
        params, threat = self.params, ctx.threat
        if threat.is_zero:
            return video.clone()
        activity = activity_map(video)
        if params.map_smooth_t:
            activity = smooth_in_time(activity)
        ball = Ball(threat, video)
        bound: Rows = ball
        if params.map_on == "eps":
            if threat.norm != "linf":
                raise IncompatibleComponents(
                    "korhonen: map_on = 'eps' scales threat.eps, which norm "
                    f"{threat.norm!r} has not; set threat.norm = 'linf'"
                )
            reach = threat.radius(video) * activity

            def within_reach(points: Tensor, rows: Tensor) -> Tensor:
                clean = video[rows]
                return ball(points.clamp_(clean - reach[rows], clean + reach[rows]), rows)

            bound = within_reach

        def gradient(points: Tensor, rows: Tensor) -> Tensor:
            grad = victim.loss_and_grad(points, rows, params.loss).grad
            return grad * activity[rows] if params.map_on == "gradient" else grad

        last = optimise(
            victim,
            video,
            gradient,
            lambda points, _rows: points,
            steps=params.steps,
            adam=Adam(video, params.lr),
            bound=bound,
            scale=activity if params.map_on == "update" else None,
        )
        return answer(victim, last, params.keep)


def activity_map(video: Tensor) -> Tensor:
    """Return ``[B, T, 1, H, W]`` in [0, 1], with maximum 1 in every frame.

    Energy of the two Sobel filters on BT.601 luma, 0 on the outermost pixels, divided by the
    frame's maximum and dilated with a 5x5 square without its corners. Where a frame has no energy
    at all, 1 everywhere.

    Args:
        video: ``[B, T, 3, H, W]``.
    """
    batch, frames, _, height, width = video.shape
    luma = (video * video.new_tensor(_LUMA).view(3, 1, 1)).sum(dim=2).flatten(0, 1)
    energy = luma.new_zeros(luma.shape)
    if height > 2 and width > 2:
        filters = luma.new_tensor([[-1, -2, -1], [0, 0, 0], [1, 2, 1]]) / 8
        kernels = torch.stack([filters, filters.T])[:, None]
        energy[:, 1:-1, 1:-1] = F.conv2d(luma[:, None], kernels).square().sum(dim=1)
    peak = energy.amax(dim=(1, 2), keepdim=True)
    # Differences of equal 8-bit values leave rounding of about 1e-8, which is no edge.
    flat = peak < 1e-10
    energy = (energy / peak.where(~flat, peak.new_ones(()))).where(~flat, energy.new_ones(()))
    wide, tall = (_largest(energy, size) for size in ((3, 5), (5, 3)))
    return wide.maximum(tall).view(batch, frames, 1, height, width)


def smooth_in_time(activity: Tensor) -> Tensor:
    """Return the largest map of each frame and its two neighbours, ``[B, T, 1, H, W]``."""
    spread = F.max_pool1d(activity.flatten(2).transpose(1, 2), 3, stride=1, padding=1)
    return spread.transpose(1, 2).reshape(activity.shape)


def _largest(frames: Tensor, size: tuple[int, int]) -> Tensor:
    padding = (size[0] // 2, size[1] // 2)
    return F.max_pool2d(frames[:, None], size, stride=1, padding=padding)[:, 0]
