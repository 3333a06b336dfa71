"""The contest of videos that were transformed before they were sampled: nobody attacks anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vcr_core.adaptive import View
from vcr_core.engine.ahead import stacked
from vcr_core.engine.contest import Contest
from vcr_core.engine.measure import distances
from vcr_core.errors import ContractViolation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from vcr_core.engine.contest import StageFn
    from vcr_core.engine.decode import After, Decoded
    from vcr_core.engine.draw import Draw
    from vcr_core.engine.setup import Setup

UNALIGNED = "the transform changes which frames belong together"


class TransformContest(Contest):
    """Predictions on each video as it is and as the transform left it.

    Every video takes part, also one that the classifier gets wrong: what a transform does to those
    says whether a drop is a loss or an exchange.
    """

    def __init__(
        self, setup: Setup, videos: Sequence[Decoded], chunk: int | None, stage: StageFn
    ) -> None:
        super().__init__(setup, videos, chunk, stage)
        found = [video.after for video in videos if video.after is not None]
        if len(found) != len(videos):
            raise ContractViolation("a video was decoded without its transform")
        self.afters: list[After] = found
        self.after = stacked([after.frames for after in found], self.device)
        gather = found[0].gather.to(self.device)
        rate = found[0].rate
        self.after_plain = View(setup.model.at_rate(rate), gather, chunk=chunk)
        self.after_defended = (
            View(setup.defended.at_rate(rate), gather, setup.links, chunk=chunk)
            if setup.links
            else None
        )

    def _attack(
        self, results: list[dict[str, Any]], clean: Draw, clean_defended: list[Draw]
    ) -> Tensor:
        self._begin_metrics(self.after, [i for i, a in enumerate(self.afters) if a.aligned])
        self.stage("eval")
        self.clock.start()
        attacked = self._predict(self.after_plain, self.after, "clean", 1)[0]
        defended = self._draws(self.after_defended, self.after)
        self.clock.stop("eval")
        for i, (fields, after) in enumerate(zip(results, self.afters, strict=True)):
            fields["transform"] = after.facts
            fields["attacked"] = attacked.corner(i, self.videos[i].label)
            if defended:
                fields["attacked_defended"] = self._corners(defended, i, listed=True)
            judged = defended if self.experiment.adaptive and defended else [attacked]
            self._judge(i, fields, [draw.predicted()[i] for draw in judged])
            fields["cost"] = {"forwards": 0, "backwards": 0, "t_attack_s": after.seconds}
        self._compare(results)
        return self.after

    def _compare(self, results: list[dict[str, Any]]) -> None:
        """Add distances and metrics where frames of both sides belong together."""
        self.stage("metrics")
        self.clock.start()
        for i, (fields, after) in enumerate(zip(results, self.afters, strict=True)):
            if after.aligned:
                fields["perturbation"] = distances(
                    self.after[i], self.clean[i], 0.0, quantised=True, projected=False
                )
                [fields["metrics"]] = self._readings(self.after, [i])
            else:
                keys = [key for _, names, _ in self.setup.metrics for key in names]
                fields["metrics"] = {k: {"value": None, "reason": UNALIGNED} for k in keys}
        self._stop_metrics()
