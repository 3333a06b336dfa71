"""A learned pattern that is added to every clip."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcr_core.errors import IncompatibleComponents, NotAvailable
from vcr_core.protocols import InputDefense

from vcr_defenses.params.learned import DefensePatternsParams
from vcr_defenses.pattern_training import read_pattern, train

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor
    from vcr_core.protocols import PrepareContext
    from vcr_core.randomness import VideoRandom


class DefensePatterns(InputDefense):
    """``y = clamp(x + P)`` with one pattern ``P`` for all clips of a model, learned beforehand.

    After Lee, Ro, "Defending video recognition model against adversarial perturbations via defense
    patterns", IEEE TDSC 21, 2024. Only its abstract was at hand: a pattern is generated on top of a
    frozen model and added to the frames. How it is learned is this project's realisation, see
    :func:`~vcr_defenses.pattern_training.train`. Deterministic; the gradient is exact.
    """

    stochastic = False
    gradient = "exact"

    def __init__(self, params: DefensePatternsParams | None = None) -> None:
        self.params = params or DefensePatternsParams()
        self._pattern: Tensor | None = None

    def prepare(self, ctx: PrepareContext) -> None:
        """Learn the pattern on ``ctx.items`` and write ``pattern.safetensors``.

        Costs ``epochs · (attack_steps + 2)`` gradients a training video. Stops and goes on at ends
        of epochs.
        """
        train(self.params, ctx)

    def restore(self, folder: Path) -> None:
        """Read the pattern.

        Raises:
            IncompatibleComponents: if it is larger than ``eps``.
        """
        pattern = read_pattern(folder)
        if float(pattern.abs().amax()) > self.params.eps + 1e-6:
            raise IncompatibleComponents(
                f"the pattern reaches {float(pattern.abs().amax()) * 255:.3g}/255, and eps is "
                f"{self.params.eps * 255:.3g}/255; run vcr prepare with the options of the run"
            )
        self._pattern = pattern

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return clips with the pattern added, clamped to the pixel range.

        Args:
            clips: ``[B, V, T', C, H, W]``, float in [0, 1].
            random: not used.

        Raises:
            NotAvailable: if no pattern was read.
            IncompatibleComponents: for clips of another shape than the pattern was learned for.
        """
        if self._pattern is None:
            raise NotAvailable(
                "defense-patterns has no pattern to add; make it with 'vcr prepare "
                "defense-patterns' and the options of the run"
            )
        if clips.shape[2:] != self._pattern.shape:
            raise IncompatibleComponents(
                f"the pattern was learned for clips {list(self._pattern.shape)} [T, C, H, W], and "
                f"these are {list(clips.shape[2:])}; use videos of one size"
            )
        return (clips + self._pattern.to(clips)).clamp(0, 1)
