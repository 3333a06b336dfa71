"""Where the refinement may go, and the walk to a stylised video from one of the target class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from vcr_attacks.query_loop import Estimate, Queries

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.threat import ThreatModel
    from vcr_core.victim import Victim


class Box:
    """An L-infinity ball of changing radius around videos, within mask and pixel range.

    Args:
        threat: says where change is allowed, and whether videos are kept with 8 bits.
        clean: ``[B, T, C, H, W]``, what pixels outside the mask keep.
        centre: ``[B, T, C, H, W]``, on the grid of 8 bits where the threat says so.
        radius: ``[B]`` in the pixel range; cut to whole levels where videos are kept with 8 bits,
            so that rounding a point inside leaves it inside.
    """

    def __init__(
        self, threat: ThreatModel, clean: Tensor, centre: Tensor, radius: Tensor | float
    ) -> None:
        self._mask = threat.mask(clean)
        self._levels = threat.quantize
        self._clean = clean
        self._centre = centre
        self.radius = centre.new_zeros(len(centre)) + radius

    def reach(self, radius: Tensor) -> Tensor:
        """Return radii as they are used: whole levels where videos are kept with 8 bits."""
        return (radius * 255 + 1e-3).floor() / 255 if self._levels else radius

    def __call__(self, adv: Tensor, rows: Tensor) -> Tensor:
        """Return points ``[b, T, C, H, W]`` of videos ``rows``, projected; may overwrite them."""
        return self.within(adv, rows, self.radius[rows])

    def within(self, adv: Tensor, rows: Tensor, radius: Tensor) -> Tensor:
        """Return points projected into balls of other radii ``[b]``."""
        centre, size = self._centre[rows], self.reach(radius).view(-1, 1, 1, 1, 1)
        inside = adv.clamp_((centre - size).clamp_min_(0), (centre + size).clamp_max_(1))
        if self._mask is None:
            return inside
        return inside.where(self._mask.bool(), self._clean[rows])


class Walk:
    """From a video of the target class towards a stylised one, while the target is predicted.

    Jiang et al., ACM MM 2019, algorithm 1, which StyleFool takes over: a step against the estimated
    slope of the target's cross-entropy and a smaller ball around the stylised video, kept if the
    target stays the prediction; else a smaller cut of the radius is tried, at last none. The cut is
    halved with each failure and doubled by success at once.

    What lies outside of the last ball is no answer: these queries count, and the victim neither
    judges nor keeps them. A video arrives with the first point of the last ball that is classified
    as the target.

    Args:
        queries: how to ask about points that are no answers; its ball is ``box``.
        targets: ``[B]``.
        box: around the stylised videos; its radii shrink.
        last: ``[B]``, the radii of answers.
        starts: ``[B, T, C, H, W]``; not modified.
        rows: which videos walk, already looked at: their starts are classified as the target.
        sizes: first step of each video ``[B, 1, 1, 1, 1]``.
    """

    TRIES = 5
    FIRST_CUT = 0.5
    LEAST_CUT = 1e-3

    def __init__(
        self,
        queries: Queries,
        targets: Tensor,
        box: Box,
        last: Tensor,
        starts: Tensor,
        rows: Tensor,
        sizes: Tensor,
    ) -> None:
        self._queries = queries
        self._targets = targets
        self._box = box
        self._last = last
        self._sizes = sizes
        self._cut = torch.full_like(last, self.FIRST_CUT)
        self.points = starts.clone()
        self.under_way = torch.zeros_like(last, dtype=torch.bool)
        self.under_way[rows] = True

    def advance(self, rows: Tensor, estimate: Estimate) -> None:
        """Make one step with videos ``rows`` that are under way."""
        slopes = self._queries.masked(estimate(self.points[rows], rows)).sign_()
        sizes = self._sizes[rows].clone()
        pending = torch.ones_like(rows, dtype=torch.bool)
        for number in range(self.TRIES):
            pending &= self._queries.among(rows, 1)
            if not bool(pending.any()):
                return
            chosen = rows[pending]
            cut = self._cut[chosen] if number < self.TRIES - 1 else torch.zeros_like(chosen)
            radius = (self._box.radius[chosen] - cut).maximum(self._last[chosen])
            moved = self.points[chosen] - sizes[pending] * slopes[pending]
            moved = self._box.within(moved, chosen, radius)
            arriving = radius <= self._last[chosen]
            kept = self._asked(moved, chosen, arriving)
            self.points[chosen[kept]] = moved[kept]
            self._box.radius[chosen[kept]] = radius[kept]
            self.under_way[chosen[kept & arriving]] = False
            if number == 0:
                self._cut[chosen[kept]] *= 2
            lost = chosen[~kept]
            self._cut[lost] = (self._cut[lost] / 2).clamp_min(self.LEAST_CUT)
            sizes[pending] = sizes[pending].where(kept.view(-1, 1, 1, 1, 1), sizes[pending] / 2)
            pending[pending.nonzero().squeeze(1)[kept]] = False

    def _asked(self, points: Tensor, rows: Tensor, answers: Tensor) -> Tensor:
        """Return ``[b]`` bool: is the target predicted? Points that are ``answers`` are judged."""
        kept = torch.zeros_like(answers)
        victim: Victim = self._queries.victim
        for candidate in (True, False):
            these = answers if candidate else ~answers
            if bool(these.any()):
                scores = victim.scores(points[these], rows[these], candidate=candidate)
                kept[these] = scores.argmax(dim=1) == self._targets[rows[these]]
        return kept
