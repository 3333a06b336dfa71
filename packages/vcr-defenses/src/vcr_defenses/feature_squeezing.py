"""Feature squeezing as a detector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from vcr_defenses.bit_depth import BitDepth
from vcr_defenses.detector import Detector
from vcr_defenses.median import Median
from vcr_defenses.non_local_means import non_local_means
from vcr_defenses.params.learned import FeatureSqueezingParams
from vcr_defenses.params.spatial import BitDepthParams, MedianParams

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.protocols import ClipFn
    from vcr_core.randomness import VideoRandom


class FeatureSqueezing(Detector):
    """Rejects a video whose prediction changes when its frames are simplified.

    Xu, Evans, Qi, "Feature squeezing: detecting adversarial examples in deep neural networks",
    NDSS 2018, equation (4) and section V: ``score = max_j ||p(x) - p(s_j(x))||_1``, between 0
    and 2, over squeezers ``s_j``: fewer bits, a spatial median, non-local means. Costs one forward
    pass more for each squeezer.
    """

    stochastic = False

    def __init__(self, params: FeatureSqueezingParams | None = None) -> None:
        self.params = params or FeatureSqueezingParams()
        super().__init__(self.params.threshold, self.params.fpr)

    def score(self, clips: Tensor, clean: Tensor, predict: ClipFn, random: VideoRandom) -> Tensor:
        """Return ``[B]`` scores in [0, 2]; see :meth:`Detector.score`."""
        p = clean.exp()
        gaps = [
            (predict(squeezed).exp() - p).abs().sum(dim=1)
            for squeezed in self._squeezed(clips, random)
        ]
        return torch.stack(gaps).amax(dim=0)

    def _squeezed(self, clips: Tensor, random: VideoRandom) -> list[Tensor]:
        chosen = self.params
        made: list[Tensor] = []
        if chosen.bits:
            made.append(BitDepth(BitDepthParams(bits=chosen.bits)).apply(clips, random))
        if chosen.median:
            made.append(Median(MedianParams(size=chosen.median)).apply(clips, random))
        if chosen.means_window:
            frames = non_local_means(
                clips.flatten(0, 2),
                window=chosen.means_window,
                patch=chosen.means_patch,
                strength=chosen.means_strength / 255,
            )
            made.append(frames.view_as(clips))
        return made
