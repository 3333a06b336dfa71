"""Universal adversarial perturbation: one difference for all videos."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.params.prepared import UapParams
from vcr_attacks.uap_training import UapTraining
from vcr_attacks.universal import DELTA_FILE, place, prepared

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext, PrepareContext
    from vcr_core.victim import Victim


class Uap(BaseVideoAttack):
    """A perturbation that is trained once and added to every video.

    Moosavi-Dezfooli, Fawzi, Fawzi, Frossard, "Universal adversarial perturbations", CVPR 2017,
    algorithm 1 (``algorithm = "deepfool"``); by default the projected sign-gradient form of
    Shafahi, Najibi, Xu, Dickerson, Davis, Goldstein, "Universal Adversarial Training", AAAI 2020,
    algorithm 1 with the clipped loss of its equation (3). A targeted run trains one perturbation
    for each class that it may be after.

    The perturbation has the model's input size and is resized to a video's frames (bilinear, so it
    cannot grow); all clips of a video share it, and longer videos repeat it in time. Attacking
    costs one forward pass and no gradient.
    """

    def __init__(self, params: UapParams | None = None) -> None:
        self.params = params or UapParams()

    def prepare(self, ctx: PrepareContext) -> None:
        """Train on ``ctx.items`` and write ``delta.safetensors`` and ``training.json``.

        Costs ``epochs`` gradients a training video, and a forward pass of each held-out one and
        epoch. Stops and goes on at ends of epochs.

        Raises:
            IncompatibleComponents: for a targeted run with ``algorithm = "deepfool"``.
        """
        if not (ctx.folder / DELTA_FILE).exists():
            UapTraining(self.params, ctx).run()

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return the videos with the perturbation added, clamped to the pixel range.

        Args:
            victim: asked once, to know whether it worked.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: of a targeted contest, the targets choose the perturbations.
            ctx: the threat model, of norm ``linf``, and the folder of the artifact.

        Raises:
            NotAvailable: if nothing was prepared, or not for a target.
            IncompatibleComponents: if it was prepared for another radius.
        """
        if ctx.threat.is_zero:
            return video.clone()
        chosen = prepared("uap", ctx, goals).to(video)
        placed = place(chosen, video.shape[1], (video.shape[3], video.shape[4]))
        point = ctx.threat.project(video + placed, video)
        rows = victim.active()
        if rows.numel():
            victim.scores(point[rows], rows)
        return point
