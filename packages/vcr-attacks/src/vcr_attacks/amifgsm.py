"""MI-FGSM whose radius follows the quality of the clean video."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from vcr_core.errors import ComponentUnavailable, UsageError
from vcr_core.protocols import BaseVideoAttack

from vcr_attacks.mifgsm import run
from vcr_attacks.niqe import Niqe
from vcr_attacks.params.gradient import AmifgsmParams, MifgsmParams

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.victim import Victim

Quality: TypeAlias = "Callable[[Tensor], float]"
"""From frames ``[T, C, H, W]`` in [0, 1] to a number, lower for more natural ones."""


class Amifgsm(BaseVideoAttack):
    """AMI-FGSM: MI-FGSM with a radius of ``1 / (8 q)`` for each video, ``q`` its NIQE.

    The VCR-Bench paper names the attack without a reference; this is the method that the image
    quality community calls so (MSU benchmark of quality metrics, Technologies 12(11):220, 2024):
    natural videos, which have a low ``q``, get a larger radius. The radius is clamped to
    ``[eps_min, eps_max]``, never exceeds the run's, and is recorded for each video as
    ``perturbation.eps``. Because it differs between videos, results do not belong in a table of
    attacks at one radius.

    The VCR-Bench code falls back to 8/255 whenever NIQE fails, which it does on every video of
    several clips. Here a quality that cannot be had is an error before the run.

    Args:
        params: parameters.
        quality: the quality function; found by ``params.quality`` when absent.

    Raises:
        ComponentUnavailable: if the quality function cannot be had.
    """

    def __init__(
        self, params: AmifgsmParams | None = None, *, quality: Quality | None = None
    ) -> None:
        self.params = params or AmifgsmParams()
        self._quality = quality or find_quality(self.params.quality)

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return perturbed videos within balls of their own, inside of the threat's.

        Args:
            victim: white-box access.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not modified.
            goals: what counts as success; the victim minimises their loss.
            ctx: the threat model, of norm ``linf``.

        Raises:
            BudgetExhausted: when no video has budget left; best points are with the victim.
            UsageError: for a threat with radii of single frames, or a quality that is no
                positive number.
        """
        params, threat = self.params, ctx.threat
        if threat.is_zero:
            return video.clone()
        if threat.per_frame_eps is not None:
            raise UsageError(
                "amifgsm sets the radius of each video itself; leave threat.per_frame_eps out"
            )
        limit = threat.radius(video).flatten()
        wanted = video.new_tensor([1 / (8 * self._rate(v)) for v in video])
        eps = wanted.clamp(params.eps_min, params.eps_max).minimum(limit)
        ctx.log(range(len(video)), eps=eps.tolist())
        momentum = MifgsmParams(
            steps=params.steps,
            step=params.step,
            decay=params.decay,
            normalize=params.normalize,
            loss=params.loss,
            keep=params.keep,
        )
        return run(momentum, victim, video, threat.with_eps(eps))

    def _rate(self, video: Tensor) -> float:
        value = float(self._quality(video))
        if not math.isfinite(value) or value <= 0:
            raise UsageError(
                f"the quality function {self.params.quality!r} gave {value}; a positive number is "
                "needed"
            )
        return value


def find_quality(name: str) -> Quality:
    """Return NIQE, or the function that ``"package.module:function"`` names.

    Raises:
        ComponentUnavailable: if it cannot be had.
    """
    if name == "niqe":
        return Niqe()
    module, _, attribute = name.partition(":")
    try:
        found: Quality = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ComponentUnavailable(
            f"attack.quality = {name!r} cannot be had: {error}; give 'niqe' or a function as "
            "'package.module:function'"
        ) from error
    return found
