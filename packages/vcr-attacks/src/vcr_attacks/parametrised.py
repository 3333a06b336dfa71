"""Gradients of perturbations that are given by few numbers: flows, colours, borders, patches.

The victim gives the gradient at the pixels, where it is metered and exact for any chunk size; the
chain rule from there to the parameters is this module's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import torch

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.threat import ThreatModel
    from vcr_core.victim import LossFn, Victim

    from vcr_attacks.optimiser_loop import Gradient, Rows

Penalty: TypeAlias = "Callable[[Tensor, Tensor], Tensor]"
"""From parameters ``[b, ...]`` and rows ``[b]`` to what is added to each video's loss ``[b]``."""


def through(
    victim: Victim, show: Rows, loss: LossFn = "ce", penalty: Penalty | None = None
) -> Gradient:
    """Return the gradient of ``loss(show(v)) + penalty(v)`` with respect to parameters ``v``.

    Args:
        victim: asked for one gradient a video and call.
        show: differentiable, from parameters ``[b, ...]`` and rows to videos ``[b, T, C, H, W]``.
        loss: what the victim minimises.
        penalty: a differentiable regulariser.
    """

    def gradient(parameters: Tensor, rows: Tensor) -> Tensor:
        leaf = parameters.detach().requires_grad_()
        with torch.enable_grad():
            videos = show(leaf, rows)
            outer = victim.loss_and_grad(videos.detach(), rows, loss).grad
            value = (videos * outer).sum()
            if penalty is not None:
                value = value + penalty(leaf, rows).sum()
        return torch.autograd.grad(value, leaf)[0]

    return gradient


class Allowed:
    """Keeps changed videos inside of frames, region and pixel range, differentiably.

    Args:
        threat: the threat model of the whole batch.
        clean: ``[B, T, C, H, W]``.
    """

    def __init__(self, threat: ThreatModel, clean: Tensor) -> None:
        mask = threat.mask(clean)
        self._free = None if mask is None else mask.bool()
        self._clean = clean

    def __call__(self, videos: Tensor, rows: Tensor) -> Tensor:
        """Return ``videos`` ``[b, T, C, H, W]`` where change is allowed, clean ones elsewhere."""
        if self._free is None:
            return videos
        return videos.where(self._free, self._clean[rows])
