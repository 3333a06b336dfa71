"""Momentum iterative fast gradient sign method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.params.gradient import MifgsmParams
from vcr_attacks.sign_loop import Ball, answer, descend, step_sizes

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.threat import ThreatModel
    from vcr_core.victim import Victim

Scope = Literal["video", "frame"]


class Momentum:
    """Signs of an accumulated gradient, ``m <- decay * m + g / ||g||_1``, of each video its own.

    Args:
        like: the videos ``[B, T, C, H, W]``.
        decay: weight of what was accumulated before.
        normalize: divide each gradient by its L1 norm before it is added.
        scope: the norm is over a whole video, or over each frame.
    """

    def __init__(
        self, like: Tensor, decay: float, *, normalize: bool = True, scope: Scope = "video"
    ) -> None:
        self._sum = torch.zeros_like(like)
        self._decay = decay
        self._normalize = normalize
        self._axes = (1, 2, 3, 4) if scope == "video" else (2, 3, 4)

    def __call__(self, grad: Tensor, rows: Tensor) -> Tensor:
        """Return signs ``[b, T, C, H, W]`` for gradients of videos ``rows``; may overwrite them."""
        if self._normalize:
            # Relative to the largest value first: tiny gradients would underflow in the sum.
            peak = grad.abs().amax(self._axes, keepdim=True)
            grad.div_(peak.where(peak > 0, peak.new_ones(())))
            grad.div_(grad.abs().sum(self._axes, keepdim=True).clamp_min(1e-12))
        total = self._sum[rows].mul_(self._decay).add_(grad)
        self._sum[rows] = total
        return total.sign_()


class Mifgsm(BaseVideoAttack):
    """MI-FGSM: I-FGSM along an accumulated gradient.

    Dong et al., "Boosting Adversarial Attacks with Momentum", CVPR 2018, equations 6 and 7:
    ``m <- decay * m + g / ||g||_1`` and ``x <- project(x - step * sign(m))``. The norm is over all
    axes of one video, never over the batch. Costs at most ``steps`` gradients and one forward pass;
    uses no randomness.

    The VCR-Bench code leaves the normalisation out (``normalize = "none"``): large gradients of the
    first steps then decide the direction of all later ones. torchattacks normalises over channels,
    rows and columns only, which equals ours where time is folded into channels; foolbox accumulates
    signs, which is another method.
    """

    def __init__(self, params: MifgsmParams | None = None) -> None:
        self.params = params or MifgsmParams()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return perturbed videos within the threat's ball.

        Args:
            victim: white-box access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success; the victim minimises their loss.
            ctx: the threat model, of norm ``linf``.

        Raises:
            BudgetExhausted: when no video has budget left; best points are with the victim.
        """
        return run(self.params, victim, video, ctx.threat)


def run(params: MifgsmParams, victim: Victim, video: Tensor, threat: ThreatModel) -> Tensor:
    """Return videos perturbed by MI-FGSM within ``threat``; arguments as in :class:`Mifgsm`."""
    if threat.is_zero:
        return video.clone()
    last = descend(
        victim,
        video,
        Ball(threat, video),
        steps=params.steps,
        sizes=step_sizes(params.step, params.steps, threat, video),
        direction=Momentum(
            video, params.decay, normalize=params.normalize == "l1", scope=params.norm_scope
        ),
        loss=params.loss,
    )
    return answer(victim, last, params.keep)
