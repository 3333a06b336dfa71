"""``tamper-baseline``: finds tampering by what it does to differences between frames.

The effects are those of Agarwal et al., "MVTamperBench", arXiv 2412.19794; the paper asks
video-language models and has no such baseline, so signals, scores and rules are ours. It looks at
every frame of a video and needs no training; thresholds may be fitted on clean videos.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import torch
from vcr_core.protocols import BaseVideoClassifier

from vcr_models.bundled import bundled
from vcr_models.detectors.calibration import read_calibration, read_calibration_file
from vcr_models.detectors.clip import CLIP, checked, facts_of
from vcr_models.detectors.decision import Rules
from vcr_models.detectors.names import LABELS, SUITES
from vcr_models.detectors.params import BaselineParams
from vcr_models.detectors.scores import SCORES, THRESHOLDS
from vcr_models.detectors.signals import signals_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor
    from vcr_core.protocols import VideoClassifier
    from vcr_core.specs import WeightSpec

    from vcr_models.detectors.decision import Decider
    from vcr_models.detectors.scores import Found


class TamperBaseline(BaseVideoClassifier):
    """Rules over eight scores, or a linear model of them.

    Args:
        params: effects that it reckons with, a calibration of one's own.
        weights: a bundled calibration; without a file the published thresholds.
        fps: frames per second of the clips that it is asked about.
        decider: what decides, in the place of all that.

    Attributes:
        labels: ``original`` and all thirteen effects; those that it does not reckon with have
            next to no probability.
        clip: every frame, of videos of more than 600 every second one (third, …).
    """

    def __init__(
        self,
        params: BaselineParams | None = None,
        weights: WeightSpec | None = None,
        *,
        fps: float | None = None,
        decider: Decider | None = None,
    ) -> None:
        self.params = params or BaselineParams()
        self.labels = LABELS
        self.clip = CLIP
        self._effects = SUITES[self.params.effects]
        self._fps = fps or self.params.unknown_fps
        self._decider = decider or _decider(self.params, weights)

    def at_rate(self, fps: float | None) -> VideoClassifier:
        """Return this detector for clips of so many frames a second."""
        return TamperBaseline(self.params, fps=fps, decider=self._decider)

    def logits(self, clips: Tensor) -> Tensor:
        """Return ``[N, 1, 14]`` log-probabilities of clips ``[N, T, 3, H, W]``; no gradient."""
        return self.examine(clips)[0]

    def examine(self, clips: Tensor) -> tuple[Tensor, Sequence[Mapping[str, Any]]]:
        """Return log-probabilities and, for each clip, score, decision, segment and all scores.

        Args:
            clips: ``[N, T, 3, H, W]`` in [0, 1], any T, H and W.

        Raises:
            ValueError: another number of dimensions or channels.
        """
        rows, told = [], []
        with torch.no_grad():
            for clip in checked(clips).detach():
                found = self.scores(clip)
                values = {name: one.value for name, one in found.items()}
                row = torch.from_numpy(self._decider.log_probabilities(values, self._effects))
                named = LABELS.names[int(row.argmax())]
                place = found.get(named)
                segment = None if place is None else (place.start, place.end)
                rows.append(row)
                told.append(facts_of(row, segment, self._fps, {"scores": values}))
        logits = torch.stack(rows).to(clips.device, torch.float32)
        return logits.unsqueeze(1), told

    def scores(self, clip: Tensor) -> dict[str, Found]:
        """Return the eight scores of a clip ``[T, 3, H, W]``, and where each one is found."""
        signals = signals_of(clip)
        return {name: score(signals, self._fps) for name, score in SCORES.items()}

    def to(self, device: torch.device | str) -> Self:
        """Return this detector: it works on the device of the clips, and then on the CPU."""
        return self


def _decider(params: BaselineParams, weights: WeightSpec | None) -> Decider:
    if params.calibration is not None:
        return read_calibration_file(params.calibration)
    if weights is None or not weights.url:
        return Rules(THRESHOLDS)
    return read_calibration(bundled(weights.url, weights.sha256), weights.url)
