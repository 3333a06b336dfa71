"""Sparse perturbations: few frames change, under an l2,1 penalty."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from vcr_core.errors import UsageError
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.frames import frame_saliency, free_frames
from vcr_attacks.params.gradient import SparseParams
from vcr_attacks.sign_loop import Ball
from vcr_attacks.smallest import Smallest, affordable, l21

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.threat import ThreatModel
    from vcr_core.victim import Victim

FIRST_WEIGHT = 0.5
FACTOR = 2.0
"""The search multiplies or divides by this until it has both a success and a failure."""


class Sparse(BaseVideoAttack):
    """Sparse attack: minimise ``L(x + E) + weight * sum_t ||E_t||_2``.

    Wei, Zhu, Yuan, Su, "Sparse Adversarial Perturbations for Videos", AAAI 2019, equation 1; only
    chosen frames may change. Two things differ from the paper's Adam on the whole objective. The
    penalty is applied as its proximal map after each step (shrink each frame's ``E_t`` by a length,
    down to exact zero), because an optimiser alone never reaches zero. And the second moment of
    Adam is one number a video: one a pixel moves every frame alike, however little it matters (on
    a linear model the four frames' changes were equal to 3 digits), and there is nothing to select.

    The shrinkage is in units of the video's mean gradient: in the long run, a frame stays as it was
    if the root mean square of its gradient is below ``weight`` times that of the whole video.

    ``weight = "auto"`` searches the largest weight that succeeds, of each video its own. The
    answer is the success of least l2,1 norm, whatever the run's stop rule says. Costs at most
    ``rounds * steps`` gradients (``steps`` with a fixed weight), one more with saliency. Uses no
    randomness. With norm ``linf`` every point is projected into the ball.
    """

    def __init__(self, params: SparseParams | None = None) -> None:
        self.params = params or SparseParams()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return the sparsest success, or the best point where nothing succeeded.

        Args:
            victim: white-box access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success; the victim minimises their loss.
            ctx: the threat model, of norm ``none`` or ``linf``.

        Raises:
            BudgetExhausted: if the budget does not hold a single gradient.
            UsageError: for frames that the video or the threat does not have.
        """
        if ctx.threat.is_zero:
            return video.clone()
        free = self._free(victim, video, ctx.threat)
        found = Smallest(video, ctx.threat, l21)
        ball = Ball(ctx.threat, video)
        search = self.params.weight == "auto"
        first = FIRST_WEIGHT if self.params.weight == "auto" else self.params.weight
        weight = video.new_full((len(video),), first)
        low, high = torch.zeros_like(weight), torch.full_like(weight, math.inf)
        for _ in range(self.params.rounds if search else 1):
            won = self._round(victim, video, goals, ball, free, weight, found)
            low = low.where(~won, low.maximum(weight))
            high = high.where(won, high.minimum(weight))
            between = (low * high).sqrt()
            outside = torch.where(won, weight * FACTOR, weight / FACTOR)
            weight = torch.where((low > 0) & high.isfinite(), between, outside)
        return found.answer(victim)

    def _round(
        self,
        victim: Victim,
        video: Tensor,
        goals: Goals,
        ball: Ball,
        free: Tensor,
        weight: Tensor,
        found: Smallest,
    ) -> Tensor:
        """Minimise with fixed weights ``[B]`` and return which videos had a success ``[B]``."""
        lr = self.params.lr
        change = torch.zeros_like(video)
        moments = _Moments(video)
        won = torch.zeros(len(video), dtype=torch.bool, device=video.device)
        rows = torch.arange(len(video), device=video.device)
        length = lr * math.sqrt(video[0, 0].numel())
        for _ in range(self.params.steps):
            rows = affordable(victim, rows)
            if not rows.numel():
                break
            shown = video[rows] + change[rows]
            _, grad, z = victim.loss_and_grad(shown, rows, self.params.loss)
            here = goals.achieved(z, rows)
            won[rows] |= here
            found.offer(shown[here], rows[here])
            moved = change[rows] - lr * moments.direction(grad * free[rows], rows)
            size = moved.flatten(2).norm(dim=2).clamp_min(1e-12)
            shrink = (1 - weight[rows].unsqueeze(1) * length / size).clamp_min(0)
            moved *= shrink.view(*shrink.shape, 1, 1, 1)
            change[rows] = ball(moved + video[rows], rows) - video[rows]
        return won

    def _free(self, victim: Victim, video: Tensor, threat: ThreatModel) -> Tensor:
        """Return ``[B, T, 1, 1, 1]``, 1 for frames that may change."""
        allowed = free_frames(threat, video)
        frames = self.params.frames
        count = len(video)
        free = video.new_zeros(count, video.shape[1])
        if isinstance(frames, str) and frames.startswith("saliency:"):
            number = min(int(frames.partition(":")[2]), len(allowed))
            rows = torch.arange(count, device=video.device)
            sizes = frame_saliency(victim, video, rows, allowed, self.params.loss)
            free.scatter_(1, sizes.topk(number, dim=1).indices, 1.0)
        else:
            free[:, _chosen(frames, allowed)] = 1
        return free.view(*free.shape, 1, 1, 1)


class _Moments:
    """Adam's moments and step counts of each video, the second one a single number."""

    def __init__(self, like: Tensor) -> None:
        self._first = torch.zeros_like(like)
        self._second = like.new_zeros(len(like))
        self._count = like.new_zeros(len(like))

    def direction(self, grad: Tensor, rows: Tensor) -> Tensor:
        """Return moves ``[b, T, C, H, W]`` whose root mean square is about 1."""
        count = self._count[rows] + 1
        first = self._first[rows].mul_(0.9).add_(grad, alpha=0.1)
        second = self._second[rows] * 0.999 + 0.001 * grad.flatten(1).square().mean(dim=1)
        self._count[rows], self._first[rows], self._second[rows] = count, first, second
        root = (second / (1 - 0.999**count)).sqrt() + 1e-8
        return first / (root * (1 - 0.9**count)).view(-1, 1, 1, 1, 1)


def _chosen(frames: str | list[int], allowed: list[int]) -> list[int]:
    if not isinstance(frames, str):
        missing = [f for f in frames if f not in allowed]
        if missing:
            raise UsageError(
                f"attack.frames names frame {missing[0]}; the frames that may change are "
                f"{', '.join(map(str, allowed))}"
            )
        return frames
    rule, _, number = frames.partition(":")
    if rule == "first":
        return allowed[: int(number)]
    return allowed[:: int(number)] if rule == "every" else allowed
