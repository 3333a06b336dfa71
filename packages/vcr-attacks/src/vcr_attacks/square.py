"""Square Attack: random search with squares, from scores alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from vcr_core.errors import IncompatibleComponents
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.params.query import SquareParams
from vcr_attacks.query_loop import score_loss
from vcr_attacks.sign_loop import Ball
from vcr_attacks.square_moves import EnergyMoves, Frames, Moves, VertexMoves, square_side

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.threat import ThreatModel
    from vcr_core.victim import Victim


class Square(BaseVideoAttack):
    """Square Attack in the L-infinity or L2 ball, with squares that extend over time.

    Andriushchenko, Croce, Flammarion, Hein, ECCV 2020. A candidate replaces the current point if
    its loss is lower, so the loss never rises. Costs one query for the start and one per iteration.

    How squares extend over time matters more than any other choice. Where gradients agree over
    time (a linear model in the tests) ``tube`` is the strongest. A pattern that stands still
    carries no motion, though: of 16 videos of the generated data set (Linf 8/255, 200 iterations)
    ``tube`` broke none on ``tiny-r3d`` and ``tiny-vit``, ``fold`` about two thirds, ``mixed`` about
    half. ``mixed`` is the default because it fails on neither.

    On a random victim a candidate that looks better is asked for once more and has to be better in
    the mean, which costs a further query each time.
    """

    def __init__(self, params: SquareParams | None = None) -> None:
        self.params = params or SquareParams()

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
        if ctx.threat.is_zero:
            return video.clone()
        moves = self._moves(ctx.threat, video)
        height, width = video.shape[-2:]
        points = moves.start(ctx.random)
        rows = victim.active()
        if not rows.numel():
            return victim.best()
        losses = video.new_full((len(video),), math.inf)
        losses[rows] = self._loss(victim, points[rows], rows, goals)
        for iteration in range(self.params.iterations):
            rows = victim.active()
            if not rows.numel():
                break
            side = square_side(iteration, self.params.iterations, self.params.p_init, height, width)
            candidates = moves.propose(points[rows], rows, side, ctx.random)
            found = self._loss(victim, candidates, rows, goals)
            better = found < losses[rows]
            if victim.stochastic and bool(better.any()):
                again = self._loss(victim, candidates[better], rows[better], goals)
                found[better] = (found[better] + again) / 2
                better = found < losses[rows]
            points[rows[better]] = candidates[better]
            losses[rows[better]] = found[better]
        return victim.best()

    def _moves(self, threat: ThreatModel, video: Tensor) -> Moves:
        frames = Frames(self.params.temporal, video.shape[1])
        if threat.norm == "linf":
            return VertexMoves(threat, video, frames)
        if threat.norm == "l2":
            return EnergyMoves(threat, video, frames, Ball(threat, video))
        raise IncompatibleComponents(
            f"square is defined for threat.norm 'linf' and 'l2', not {threat.norm!r}"
        )

    def _loss(self, victim: Victim, points: Tensor, rows: Tensor | None, goals: Goals) -> Tensor:
        return goals.loss(victim.scores(points, rows), rows, score_loss(self.params.loss, goals))
