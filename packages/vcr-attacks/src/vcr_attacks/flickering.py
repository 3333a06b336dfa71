"""Over-the-air flickering: one colour offset per frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.optimiser_loop import Adam, optimise
from vcr_attacks.parametrised import Allowed, through
from vcr_attacks.params.perceptual import FlickeringParams
from vcr_attacks.sign_loop import answer

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.threat import ThreatModel
    from vcr_core.victim import Victim


class Flickering(BaseVideoAttack):
    """Flickering: every pixel of a frame is shifted by the same colour.

    Pony, Naeh, Mannor, "Over-the-Air Adversarial Flickering Attacks against Video Recognition
    Networks", CVPR 2021, equations (1) to (5), of one video at a time. Minimises a hinge on the
    probability margin (cross-entropy if targeted) plus ``weight`` times thickness and roughness of
    the offsets with Adam. ``|offset|`` is bounded by ``bound``, or by the threat's radius in
    ``linf``. Costs at most ``steps`` gradients and one forward pass; uses no randomness.

    After clamping to the pixel range the change is no longer the same for every pixel; thickness
    and roughness are those of the offsets.
    """

    def __init__(self, params: FlickeringParams | None = None) -> None:
        self.params = params or FlickeringParams()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return flickering videos.

        Args:
            victim: white-box access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success; the victim minimises their loss.
            ctx: the threat model, of norm ``linf`` or ``none``; frames and region are kept.

        Raises:
            BudgetExhausted: when no video has budget left; best points are with the victim.
        """
        params = self.params
        if ctx.threat.is_zero:
            return video.clone()
        start = video.new_zeros(video.shape[:3])
        largest = self._largest(ctx.threat, start)
        allowed = Allowed(ctx.threat, video)

        def show(offsets: Tensor, rows: Tensor) -> Tensor:
            return allowed((video[rows] + offsets[..., None, None]).clamp(0, 1), rows)

        def penalty(offsets: Tensor, _rows: Tensor) -> Tensor:
            # The paper's videos are in [-1, 1]: offsets count twice.
            shape = params.thickness * thickness(2 * offsets)
            return params.weight * (shape + params.roughness * roughness(2 * offsets))

        def bound(offsets: Tensor, rows: Tensor) -> Tensor:
            return offsets.clamp_(-largest[rows], largest[rows])

        last = optimise(
            victim,
            start,
            through(victim, show, params.loss, penalty),
            show,
            steps=params.steps,
            adam=Adam(start, params.lr),
            bound=bound,
        )
        return answer(victim, last, params.keep)

    def _largest(self, threat: ThreatModel, offsets: Tensor) -> Tensor:
        """Return the bound of each offset, ``[B, T, C]``."""
        if threat.norm == "linf":
            radius = threat.radius(offsets[..., None, None])
            return radius.flatten(2).expand_as(offsets)
        return offsets.new_full(offsets.shape, self.params.bound)


def thickness(offsets: Tensor) -> Tensor:
    """Return ``[b]``: mean square of offsets ``[b, T, C]``; D1, equation (3)."""
    return offsets.square().mean(dim=(1, 2))


def roughness(offsets: Tensor) -> Tensor:
    """Return ``[b]``: mean squares of first and second differences in time, cyclic; D2.

    Args:
        offsets: ``[b, T, C]``.
    """
    before, after = offsets.roll(1, dims=1), offsets.roll(-1, dims=1)
    first = (offsets - before).square().mean(dim=(1, 2))
    second = (after - 2 * offsets + before).square().mean(dim=(1, 2))
    return first + second
