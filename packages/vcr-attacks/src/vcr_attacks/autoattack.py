"""AutoAttack: an ensemble whose members take on what those before them left standing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from vcr_core.errors import UsageError
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.apgd import Apgd
from vcr_attacks.fab import Fab
from vcr_attacks.params.gradient import ApgdParams, AutoAttackParams, FabParams
from vcr_attacks.params.query import SquareParams
from vcr_attacks.square import Square

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import Attack, AttackContext
    from vcr_core.victim import Victim

CLASSES = 4
"""Classes that the targeted DLR loss needs."""


class AutoAttack(BaseVideoAttack):
    """AutoAttack in the L-infinity or L2 ball.

    Croce & Hein, "Reliable Evaluation of Adversarial Robustness with an Ensemble of Diverse
    Parameter-free Attacks", ICML 2020, section 6. ``standard``: APGD on cross-entropy, APGD on the
    targeted DLR loss and FAB-T, both against 9 classes (100 steps each), Square with 5000 queries.
    ``fast``, of our own: 20 steps, 3 classes, 200 queries, without FAB-T, which breaks few videos
    that the others do not. ``rand``, for random defenses: APGD on cross-entropy and on DLR, 100
    steps; the run's ``protocol.eot`` says over how many draws gradients are averaged (the paper:
    20).

    Each member works on videos that are not broken yet, if the run's stop rule ends a video at its
    success; with ``stop = "budget"`` all members run on all videos. All ask the same victim, so
    cost and budgets are those of the whole ensemble.
    """

    def __init__(self, params: AutoAttackParams | None = None) -> None:
        self.params = params or AutoAttackParams()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return perturbed videos within the threat's ball.

        Args:
            victim: white-box access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success.
            ctx: the threat model, of norm ``linf`` or ``l2``, and one generator per video.

        Raises:
            BudgetExhausted: when no video has budget left; best points are with the victim.
            UsageError: for a model with fewer than 4 classes.
        """
        if ctx.threat.is_zero:
            return video.clone()
        if victim.num_classes < CLASSES:
            raise UsageError(
                f"autoattack needs a model with at least {CLASSES} classes for its DLR losses, "
                f"this one has {victim.num_classes}; use apgd with loss 'ce' or 'margin'"
            )
        for name, member in self._members():
            if not victim.active().numel():
                break
            member.attack(victim, video, goals, replace(ctx, random=ctx.random.child(name)))
        return victim.best()

    def _members(self) -> Iterator[tuple[str, Attack]]:
        if self.params.version == "rand":
            yield "apgd-ce", Apgd(ApgdParams(steps=100))
            yield "apgd-dlr", Apgd(ApgdParams(steps=100, loss="dlr"))
            return
        fast = self.params.version == "fast"
        steps, classes, queries = (20, 3, 199) if fast else (100, 9, 4999)
        yield "apgd-ce", Apgd(ApgdParams(steps=steps))
        yield "apgd-t", Apgd(ApgdParams(steps=steps, loss="dlr-targeted", target_classes=classes))
        if not fast:
            params = FabParams(steps=steps, target_classes=classes, smallest=False)
            yield "fab-t", Fab(params)
        yield "square", Square(SquareParams(iterations=queries, p_init=0.8))
