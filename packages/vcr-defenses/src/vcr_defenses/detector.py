"""Detectors: defenses that leave the prediction alone, score the clips, and reject high scores."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from vcr_core.errors import IncompatibleComponents, NotAvailable
from vcr_core.randomness import VideoRandom
from vcr_core.seeding import derive_seed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor
    from vcr_core.protocols import ClipFn, PrepareContext

THRESHOLD_FILE = "threshold.json"


class Detector(ABC):
    """Base of detectors.

    The defended prediction is the classifier's own, so an attack's gradient is exact; what the
    record gains is a score, and whether it lies above the threshold. The score is worked out for
    final predictions only, never for an attack's queries: an attack that minimises the score as
    well as the loss is another attack.

    Args:
        threshold: scores above it are rejected; ``None`` to take the one that :meth:`prepare`
            found.
        fpr: share of clean videos that may be rejected, for :meth:`prepare`.
    """

    gradient = "exact"

    def __init__(self, threshold: float | None, fpr: float) -> None:
        self._threshold = threshold
        self._fpr = fpr

    @abstractmethod
    def score(self, clips: Tensor, clean: Tensor, predict: ClipFn, random: VideoRandom) -> Tensor:
        """Return ``[B]`` scores, at least 0, larger for what looks attacked.

        Args:
            clips: ``[B, V, T', C, H, W]``, float in [0, 1].
            clean: ``[B, K]`` log-probabilities of these clips.
            predict: the classifier, for other clips.
            random: one generator a video.
        """

    def wrap(self, predict: ClipFn, random: VideoRandom) -> ClipFn:
        """Return ``predict`` with a score beside it.

        Raises:
            NotAvailable: if there is no threshold.
        """
        if self._threshold is None:
            raise NotAvailable(
                "this detector has no threshold: make one from clean videos with 'vcr prepare' "
                "and the options of the run, or set the parameter threshold"
            )
        return _Scored(self, self._threshold, predict, random)

    def prepare(self, ctx: PrepareContext) -> None:
        """Write ``threshold.json``: the quantile of the scores of clean training videos.

        Costs as many forward passes a video as the score. Videos are scored one batch at a time;
        the step starts over if it is stopped.
        """
        if (ctx.folder / THRESHOLD_FILE).exists():
            return
        scores: dict[str, float] = {}
        for batch in ctx.load(ctx.items):
            for row, video in enumerate(batch.ids):
                clips = batch.videos[row : row + 1, batch.gather]
                random = VideoRandom([derive_seed(ctx.seed, video, "prepare")], ctx.device)
                with torch.no_grad():
                    found = self.score(clips, ctx.scores(clips), ctx.scores, random)
                scores[video] = float(found)
                ctx.progress(len(scores), len(ctx.items))
        threshold = fit_threshold(list(scores.values()), self._fpr)
        report = {"threshold": threshold, "fpr": self._fpr, "scores": dict(sorted(scores.items()))}
        ctx.facts.update(threshold=threshold, videos=len(scores))
        (ctx.folder / THRESHOLD_FILE).write_text(json.dumps(report, indent=1), encoding="utf-8")

    def restore(self, folder: Path) -> None:
        """Take the threshold of the offline step, unless the parameters name one."""
        if self._threshold is not None:
            return
        report = json.loads((folder / THRESHOLD_FILE).read_text(encoding="utf-8"))
        if report["fpr"] != self._fpr:
            raise IncompatibleComponents(
                f"the threshold was made for a false-positive rate of {report['fpr']}, and the "
                f"run asks for {self._fpr}"
            )
        self._threshold = float(report["threshold"])


class _Scored:
    """Predictions as they are; scores when their facts are asked for."""

    def __init__(
        self, detector: Detector, threshold: float, predict: ClipFn, random: VideoRandom
    ) -> None:
        self._detector = detector
        self._threshold = threshold
        self._predict = predict
        self._random = random
        self._last: tuple[Tensor, Tensor] | None = None

    def __call__(self, clips: Tensor) -> Tensor:
        out = self._predict(clips)
        self._last = clips.detach(), out.detach()
        return out

    def details(self) -> Sequence[Mapping[str, Any]]:
        if self._last is None:
            return ()
        with torch.no_grad():
            scores = self._detector.score(*self._last, self._predict, self._random)
        return [{"score": s, "rejected": s > self._threshold} for s in scores.double().tolist()]


def fit_threshold(scores: Sequence[float], fpr: float) -> float:
    """Return the least score that at most a share ``fpr`` of these scores lies above.

    The (1 - fpr) quantile, "higher" interpolation.

    Raises:
        ValueError: without scores.

    Example:
        >>> fit_threshold([0.1, 0.2, 0.3, 0.4], fpr=0.25)
        0.3
    """
    if not scores:
        raise ValueError("no scores to take a threshold from")
    ordered = sorted(scores)
    # The largest number of scores that may lie above; the epsilon undoes what 0.05 * 100 loses.
    above = math.floor(fpr * len(ordered) + 1e-9)
    return ordered[max(len(ordered) - 1 - above, 0)]
