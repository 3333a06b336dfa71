"""SimBA: one orthonormal direction at a time, either way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.errors import IncompatibleComponents
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.directions import Directions, Pixels, Waves
from vcr_attacks.params.query import SimbaParams
from vcr_attacks.query_loop import Queries, first_steps, score_loss

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.victim import Victim

_L2_SHARE = 0.125


class Simba(BaseVideoAttack):
    """SimBA in the L-infinity or L2 ball.

    Guo, Gardner, You, Wilson, Weinberger, "Simple Black-box Adversarial Attacks", ICML 2019,
    algorithm 1: random directions of an orthonormal basis, each once; ``x - d`` is asked first and
    ``x + d`` only if that did not lower the loss. The basis is the lowest frequencies of the DCT
    over time, height and width (SimBA-DCT), or single pixels.

    Costs ``1 + n`` to ``1 + 2 n`` queries for ``n`` directions.

    Differs from the published code: the ball bounds it; in ``linf`` a direction's largest value is
    ``step`` (``auto``: eps), since a length of 0.2 shared by a whole video is less than one 8-bit
    level; the loss is the margin, since probabilities of a confident model do not move.
    """

    def __init__(self, params: SimbaParams | None = None) -> None:
        self.params = params or SimbaParams()

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
        if threat.norm not in ("linf", "l2"):
            raise IncompatibleComponents(
                f"simba is defined for threat.norm 'linf' and 'l2', not {threat.norm!r}"
            )
        if threat.is_zero:
            return video.clone()
        queries = Queries(victim, goals, threat, video, score_loss(params.loss, goals))
        basis: Directions = (
            Waves(video, params.times, params.grid) if params.basis == "dct" else Pixels(video)
        )
        peaked = threat.norm == "linf"
        steps = first_steps(params.step, 1.0 if peaked else _L2_SHARE, threat, video)
        orders = ctx.random.permutation(basis.count).tolist()
        points = video.clone()
        losses = queries.look(points)
        for number in range(params.iterations):
            rows = queries.going_on(1)
            if not rows.numel():
                break
            place = number % basis.count
            moves = torch.stack([basis[orders[row][place]] for row in rows.tolist()])
            if peaked:
                moves = moves / moves.abs().flatten(1).amax(dim=1).view(-1, 1, 1, 1, 1)
            moves = queries.masked(moves * steps[rows])
            for side in (-1, 1):
                asked = queries.among(rows, 1)
                rows, moves = rows[asked], moves[asked]
                if not rows.numel():
                    break
                candidates = queries.ball(points[rows] + side * moves, rows)
                found = queries.losses(candidates, rows)
                better = found < losses[rows]
                points[rows[better]] = candidates[better]
                losses[rows[better]] = found[better]
                rows, moves = rows[~better], moves[~better]
        return victim.best()
