"""Spatially transformed adversarial videos: pixels move instead of changing their values."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.optimiser_loop import Adam, optimise
from vcr_attacks.parametrised import Allowed, through
from vcr_attacks.params.perceptual import StadvParams
from vcr_attacks.sign_loop import answer

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.victim import Victim

logger = logging.getLogger(__name__)

_ROOT = 1e-8
"""Keeps the root of the flow loss differentiable at its start, where the flow is zero."""


class Stadv(BaseVideoAttack):
    """StAdv: a smooth flow field that moves pixels by fractions of a pixel.

    Xiao, Zhu, Li, He, Liu, Song, "Spatially Transformed Adversarial Examples", ICLR 2018,
    equations (1) to (4), on videos: one flow for all frames, or one per frame. Minimises the margin
    plus ``tau`` times the roughness of the flow with Adam (the paper: L-BFGS). The threat has no
    norm. Costs at most ``steps`` gradients and one forward pass; uses no randomness.

    The roughness is averaged over pixels: as a sum, which the paper takes, it grows with the
    resolution and pins the flow at zero.
    """

    def __init__(self, params: StadvParams | None = None) -> None:
        self.params = params or StadvParams()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return warped videos.

        Args:
            victim: white-box access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success; the victim minimises their loss.
            ctx: the threat model, of norm ``none``; frames and region are kept.

        Raises:
            BudgetExhausted: when no video has budget left; best points are with the victim.
        """
        params = self.params
        batch, frames, _, height, width = video.shape
        flows = frames if params.scope == "frame" else 1
        start = video.new_zeros(batch, flows, 2, height, width)
        allowed = Allowed(ctx.threat, video)
        reach = video.new_zeros(batch)

        def show(flow: Tensor, rows: Tensor) -> Tensor:
            return allowed(warp(video[rows], flow), rows)

        def penalty(flow: Tensor, _rows: Tensor) -> Tensor:
            rough = roughness(flow, mean=params.flow_loss == "mean")
            return params.tau * (rough + params.temporal * unsteadiness(flow))

        def bound(flow: Tensor, rows: Tensor) -> Tensor:
            if params.max_flow is not None:
                flow.clamp_(-params.max_flow, params.max_flow)
            reach[rows] = flow.flatten(1).abs().amax(dim=1)
            return flow

        last = optimise(
            victim,
            start,
            through(victim, show, params.loss, penalty),
            show,
            steps=params.steps,
            adam=Adam(start, params.lr),
            bound=bound,
        )
        self._warn(reach[victim.active()])
        return answer(victim, last, params.keep)

    def _warn(self, reach: Tensor) -> None:
        """Say so if most flows ``[a]`` of videos that did not fall ended where they began."""
        params = self.params
        stuck = int((reach <= params.lr).sum())
        if params.steps > 1 and params.tau > 0 and 2 * stuck > len(reach):
            logger.warning(
                "stadv: the flow of %d of %d videos that did not fall is below a single step of "
                "%g pixels; tau = %g is probably too large",
                stuck,
                len(reach),
                params.lr,
                params.tau,
            )


def warp(video: Tensor, flow: Tensor) -> Tensor:
    """Return each pixel read bilinearly at its place plus the flow, clamped to the frame.

    Bilinear values lie between those of the frame, so the result is in range without clamping.

    Args:
        video: ``[b, T, C, H, W]``.
        flow: ``[b, T or 1, 2, H, W]``, (dy, dx) in pixels.
    """
    frames, _, height, width = video.shape[1:]
    per_frame = flow.shape[1] == frames
    rows = torch.arange(height, device=flow.device, dtype=flow.dtype).view(-1, 1)
    columns = torch.arange(width, device=flow.device, dtype=flow.dtype)
    fields = flow.flatten(0, 1)
    y = 2 * (rows + fields[:, 0]) / max(height - 1, 1) - 1
    x = 2 * (columns + fields[:, 1]) / max(width - 1, 1) - 1
    # One field for all frames: time folded into channels saves computing the weights again.
    pictures = video.flatten(0, 1) if per_frame else video.flatten(1, 2)
    moved = F.grid_sample(
        pictures, torch.stack([x, y], dim=-1), mode="bilinear", padding_mode="border",
        align_corners=True,
    )  # fmt: skip
    return moved.view(video.shape)


def roughness(flow: Tensor, *, mean: bool) -> Tensor:
    """Return ``[b]``: distances between the flows of 4-neighbours, over ordered pairs.

    Xiao et al., equation (4), with 4-neighbours that end at the border; summed, or divided by the
    number of pixels and neighbours. Averaged over the fields of a video.

    Args:
        flow: ``[b, F, 2, H, W]`` in pixels.
        mean: whether to divide.
    """
    down = _lengths(flow[..., 1:, :] - flow[..., :-1, :])
    across = _lengths(flow[..., 1:] - flow[..., :-1])
    total = 2 * (down.sum(dim=(2, 3)) + across.sum(dim=(2, 3))).mean(dim=1)
    return total / (4 * flow.shape[-2] * flow.shape[-1]) if mean else total


def unsteadiness(flow: Tensor) -> Tensor:
    """Return ``[b]``: mean distance between the flows of consecutive frames, 0 for one field."""
    if flow.shape[1] == 1:
        return flow.new_zeros(len(flow))
    return _lengths(flow[:, 1:] - flow[:, :-1]).mean(dim=(1, 2, 3))


def _lengths(differences: Tensor) -> Tensor:
    return (differences.square().sum(dim=2) + _ROOT).sqrt()
