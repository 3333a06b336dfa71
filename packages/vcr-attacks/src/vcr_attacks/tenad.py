"""TenAd: the nearest boundary along directions of rank one, from labels alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from vcr_core.errors import IncompatibleComponents
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.params.query import TenadParams
from vcr_attacks.rank_one import RankOne
from vcr_attacks.sign_loop import Ball
from vcr_attacks.smallest import Smallest

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.threat import ThreatModel
    from vcr_core.victim import Victim

BISECTIONS = 12


class Boundary:
    """How far the nearest other label is along a direction, asked by doubling and bisecting.

    Args:
        victim: decision access.
        goals: the labels.
        threat: projects every point.
        clean: ``[B, T, C, H, W]``.
    """

    def __init__(self, victim: Victim, goals: Goals, threat: ThreatModel, clean: Tensor) -> None:
        self._victim = victim
        self._labels = goals.labels
        self._clean = clean
        self._ball = Ball(threat, clean)
        self._smallest = Smallest(clean, threat, _peak)
        self._won = torch.zeros(len(clean), dtype=torch.bool, device=clean.device)

    def distance(self, directions: Tensor, rows: Tensor, first: Tensor, limit: Tensor) -> Tensor:
        """Return ``[b]``: the least factor found that changes the label; infinity if none does.

        Doubles from ``first`` up to ``limit``, then bisects 12 times.

        Args:
            directions: ``[b, T, C, H, W]``.
            rows: which videos.
            first: ``[b]`` first factor.
            limit: ``[b]`` largest factor.
        """
        low, high = torch.zeros_like(first), first.clone()
        found = torch.zeros_like(rows, dtype=torch.bool)
        while True:
            asking = ~found & (high <= limit) & self.able(rows)
            if not bool(asking.any()):
                break
            found[asking] = self._other(directions[asking], high[asking], rows[asking])
            missed = asking & ~found
            low[missed] = high[missed]
            high[missed] *= 2
        for _ in range(BISECTIONS):
            asking = found & self.able(rows)
            if not bool(asking.any()):
                break
            middle = (low + high) / 2
            other = self._other(directions[asking], middle[asking], rows[asking])
            near, far = asking.clone(), asking.clone()
            near[asking], far[asking] = other, ~other
            high[near], low[far] = middle[near], middle[far]
        return high.where(found, high.new_tensor(math.inf))

    def able(self, rows: Tensor) -> Tensor:
        """Return ``[b]`` bool: which videos have a query left; done ones may go on."""
        left = [self._victim.remaining(row) for row in rows.tolist()]
        return torch.tensor([n is None or n > 0 for n in left], device=rows.device)

    def answer(self) -> Tensor:
        """Return the smallest success of each video, the clean video where there is none."""
        videos = self._smallest.answer(self._victim)
        return videos.where(self._won.view(-1, 1, 1, 1, 1), self._clean)

    def _other(self, directions: Tensor, factors: Tensor, rows: Tensor) -> Tensor:
        moves = directions * factors.view(-1, 1, 1, 1, 1)
        points = self._ball(self._clean[rows] + moves, rows)
        other = self._victim.labels(points, rows) != self._labels[rows]
        if bool(other.any()):
            self._smallest.offer(points[other], rows[other])
            self._won[rows[other]] = True
        return other


def _peak(change: Tensor) -> Tensor:
    return change.abs().flatten(1).amax(dim=1)


class TenAd(BaseVideoAttack):
    """TenAd, a decision-based search for a small perturbation of rank one.

    Haghjooei, Rezghi, "TenAd: A Tensor-based Low-rank Black Box Adversarial Attack for Video
    Classification", arXiv 2504.01228: the perturbation is a factor times an outer product of one
    vector each for time, height, width and colour. The distance of the boundary along it is found
    with labels alone, its slope with respect to the vectors by finite differences, and a step is
    kept if the boundary comes nearer. The answer is the success with the least largest change,
    rounded as stored; the clean video if there is none.

    Costs per distance: the doublings and 12 bisections, or one query if a new direction is no
    nearer. Goes on after the first success, whatever the run's stop rule says: ``queries`` and the
    run's budget end it. With norm ``linf`` every point is projected into the ball.

    Differs from the published code: pixels stay in range; the first of some random directions is
    the nearest one; doubling starts at 16/255 instead of the whole range.
    """

    def __init__(self, params: TenadParams | None = None) -> None:
        self.params = params or TenadParams()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return the smallest success found, or the clean video.

        Args:
            victim: decision access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: the labels.
            ctx: the threat model, of norm ``none`` or ``linf``, and one generator per video.

        Raises:
            IncompatibleComponents: for another norm, or a targeted contest.
        """
        params, threat, random = self.params, ctx.threat, ctx.random
        if threat.norm not in ("none", "linf") or goals.targeted:
            raise IncompatibleComponents(
                "tenad is defined for an untargeted contest with threat.norm 'none' or 'linf'"
            )
        if threat.is_zero:
            return video.clone()
        space = RankOne(video, params.stride)
        edge = Boundary(victim, goals, threat, video)
        every = torch.arange(len(video), device=video.device)
        factors = video.new_zeros(len(video), space.size)
        nearest = video.new_full((len(video),), math.inf)
        for _ in range(params.starts):
            drawn = space.unit(random.normal(space.size).to(video))
            first = nearest.clamp_max(params.first)
            limit = nearest.clamp_max(params.reach)
            found = edge.distance(space.directions(drawn), every, first, limit)
            closer = found < nearest
            factors[closer], nearest[closer] = drawn[closer], found[closer]
        rates = video.new_full((len(video),), params.rate)
        for _ in range(params.steps):
            rows = every[nearest.isfinite() & (nearest > 0) & edge.able(every)]
            if not rows.numel():
                break
            here, distance = factors[rows], nearest[rows]
            slope = torch.zeros_like(here)
            for _ in range(params.directions):
                tried = space.unit(random.normal(space.size, rows=rows).to(video))
                near = space.directions(space.unit(here + params.difference * tried))
                found = edge.distance(near, rows, distance, 4 * distance)
                change = torch.where(found.isfinite(), found - distance, 0 * distance)
                slope += (change / params.difference).unsqueeze(1) * tried
            size = slope.norm(dim=1, keepdim=True).clamp_min(1e-12)
            moved = space.unit(here - rates[rows].unsqueeze(1) * slope / size)
            found = edge.distance(space.directions(moved), rows, distance, distance)
            closer = found < distance
            factors[rows[closer]], nearest[rows[closer]] = moved[closer], found[closer]
            rates[rows[~closer]] /= 2
        return edge.answer()
