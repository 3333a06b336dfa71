"""NES: gradients estimated from pairs of scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.cells import Cells
from vcr_attacks.params.query import NesParams, NesTiledParams
from vcr_attacks.pgd import random_point
from vcr_attacks.query_loop import Queries, Steps, first_steps, follow, score_loss
from vcr_attacks.sign_loop import steepest

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.randomness import VideoRandom
    from vcr_core.victim import Victim

_STEP_SHARE = 0.2
"""First step as a share of eps, as in the published code (0.01 of 0.05)."""


class NesSlope:
    """Antithetic estimate of the loss's slope with momentum, in the space of the cells.

    Args:
        queries: how to ask.
        cells: what shares one value of noise.
        random: one generator per video.
        pairs: antithetic pairs per estimate.
        sigma: standard deviation of the noise, in the pixel range.
        momentum: weight of the estimates before.
        pattern: from points and rows to ``[b, T, C, H, W]``, what the noise of one estimate is
            multiplied with; absent for 1.
    """

    def __init__(
        self,
        queries: Queries,
        cells: Cells,
        random: VideoRandom,
        *,
        pairs: int,
        sigma: float,
        momentum: float,
        pattern: Callable[[Tensor, Tensor], Tensor] | None = None,
    ) -> None:
        self._queries = queries
        self._cells = cells
        self._random = random
        self._pairs = pairs
        self._sigma = sigma
        self._momentum = momentum
        self._pattern = pattern
        self._mean = queries.clean.new_zeros(len(queries.clean), *cells.shape)

    def __call__(self, points: Tensor, rows: Tensor) -> Tensor:
        """Return slopes at ``points``, from as many whole pairs as the budgets allow."""
        pattern = None if self._pattern is None else self._pattern(points, rows)
        total = points.new_zeros(len(rows), *self._cells.shape)
        asked = points.new_zeros(len(rows), 1, 1, 1, 1)
        for _ in range(self._pairs):
            # The third query is for the look at the new point.
            live = self._queries.among(rows, 3)
            chosen = rows[live]
            if not len(chosen):
                break
            # A slice is a view where a mask would copy, and mostly all videos take part.
            part = slice(None) if len(chosen) == len(rows) else live
            noise = self._random.normal(*self._cells.shape, rows=chosen).to(points)
            offset = self._cells.spread(noise) * self._sigma
            if pattern is not None:
                offset = offset * pattern[part]
            here = points[part]
            change = self._queries.difference(here + offset, here - offset, chosen)
            total[part] += change.view(-1, 1, 1, 1, 1) * noise
            asked[part] += 1
        slope = total / (2 * self._sigma * asked.clamp_min(1))
        self._mean[rows] = self._momentum * self._mean[rows] + (1 - self._momentum) * slope
        spread = self._cells.spread(self._mean[rows])
        return spread if pattern is None else spread * pattern


class Nes(BaseVideoAttack):
    """NES in the L-infinity or L2 ball.

    Ilyas, Engstrom, Athalye, Lin, "Black-box Adversarial Attacks with Limited Queries and
    Information", ICML 2018, section 2.1: the gradient is estimated as
    ``mean(L(x + sigma u) u) / sigma`` over antithetic pairs of Gaussian ``u``; then steps of
    steepest descent with momentum, and half the step where the loss does not fall. Cells of pixels
    (``grid``) or all frames (``time_shared``) may share their noise, which leaves fewer dimensions.

    Costs ``starts + iterations * (samples + 1)`` queries. A pair is asked whole or not at all, and
    a video that is done is asked no more, so what is counted is what a sequential attacker pays.

    Differs from the published code: probes are inside the ball, since each could be the answer;
    ``sigma`` is one 8-bit level instead of 0.001, of which rounding leaves nothing in 19 of 20
    pixels; the loss is the margin, which does not flatten on a confident model.
    """

    def __init__(self, params: NesParams | None = None) -> None:
        self.params = params or NesParams()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return perturbed videos within the threat's ball.

        Args:
            victim: score access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success.
            ctx: the threat model, of norm ``linf`` or ``l2``, and one generator per video.

        Raises:
            BudgetExhausted: when no video has budget left; best points are with the victim.
            IncompatibleComponents: for another norm.
        """
        params, threat = self.params, ctx.threat
        steepest(threat.norm)
        if threat.is_zero:
            return video.clone()
        queries = Queries(victim, goals, threat, video, score_loss(params.loss, goals))
        slope = NesSlope(
            queries,
            Cells(video, params.grid, groups=1 if params.time_shared else None),
            ctx.random,
            pairs=params.samples // 2,
            sigma=params.sigma,
            momentum=params.momentum,
        )
        steps = Steps(
            first_steps(params.step, _STEP_SHARE, threat, video),
            least=params.least_step,
            plateau=params.plateau,
            choosy=params.accept_only_better,
        )
        start, losses = self._start(queries, ctx)
        follow(queries, start, losses, steps, slope, iterations=params.iterations, norm=threat.norm)
        return victim.best()

    def _start(self, queries: Queries, ctx: AttackContext) -> tuple[Tensor, Tensor]:
        """Return the best of the clean videos and some random points, and its losses."""
        points = queries.clean.clone()
        losses = queries.look(points)
        for number in range(1, self.params.starts):
            rows = queries.able(1)
            if not rows.numel():
                break
            random = ctx.random.child(f"start-{number}")
            other = random_point(ctx.threat, queries.clean, random)[rows]
            found = queries.losses(other, rows)
            better = found < losses[rows]
            points[rows[better]] = other[better]
            losses[rows[better]] = found[better]
        return points, losses


class NesTiled(Nes):
    """NES in few dimensions, from the best of some starts, with steps that have to pay.

    The values that the VCR-Bench code calls ``gradestv2``, as options of :class:`Nes`: cells of
    pixels share their noise, the search begins at the best of ``starts`` points, and a step is kept
    only if it lowered the loss (it then grows by 5 %, else it is halved).
    """

    def __init__(self, params: NesTiledParams | None = None) -> None:
        super().__init__(params or NesTiledParams())
