"""Adversarially trained weights in the place of the model's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcr_defenses.params.learned import AdvTrainedParams

if TYPE_CHECKING:
    from vcr_core.protocols import ClipFn
    from vcr_core.randomness import VideoRandom


class AdvTrained:
    """Evaluates the same architecture with weights from adversarial training.

    Madry et al., "Towards deep learning models resistant to adversarial attacks", ICLR 2018,
    equation (2.1): the weights minimise the loss of the worst point of the ball around each
    training video. The clips stay as they are; only the classifier is another one. An attack that
    does not know the defense attacks the model as it is named in the run, so that a non-adaptive
    run measures transfer from the ordinary weights to the hardened ones.
    """

    def __init__(self, params: AdvTrainedParams | None = None) -> None:
        self.params = params or AdvTrainedParams()

    def checkpoint(self, model: str) -> str:
        """Return the reference of the hardened model.

        Args:
            model: reference of the undefended model, ``name`` or ``name.variant``.
        """
        return self.params.model or f"{model.partition('.')[0]}.{self.params.variant}"

    def wrap(self, predict: ClipFn, random: VideoRandom) -> ClipFn:
        """Return ``predict`` as it is; the classifier behind it has been replaced."""
        return predict
