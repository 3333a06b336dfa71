"""Videos that were attacked on one model, the source, and are shown to another one.

The attack is that of the source's own white-box run: the same frames, groups, goals and draws, so
the two share what they compute. The adversarial clip then counts as a video of its frames: the
evaluated model samples from those, when they are clean and when they are attacked alike.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from vcr_core.datasets.labels import match_labels
from vcr_core.engine.contest import Contest, Result
from vcr_core.engine.decode import Decoded, decode, plan_for, rate_of
from vcr_core.errors import ContractViolation
from vcr_core.video.sampling import SamplingPlan

if TYPE_CHECKING:
    from torch import Tensor

    from vcr_core.engine.contest import StageFn
    from vcr_core.engine.draw import Draw
    from vcr_core.engine.setup import Setup

OF_THE_ATTACK = ("perturbation", "metrics", "trace")
"""Fields of the source's record that say what was done to the video."""
OF_THE_SOURCE = ("label", "target", "clean", "attacked", "success")
"""Fields of the source's record that say what it made of the source, by its own classes."""


def decode_for_transfer(setup: Setup, source: Setup, video_id: str) -> Decoded:
    """Read one video as the source samples it, with the evaluated model's way to look at that.

    Where the evaluated model would sample exactly these frames by itself, it looks at them as it
    does then; else it samples from them as from a video that has no others.
    """
    started = time.perf_counter()
    seen = decode(source, video_id)
    spec, protocol = setup.model.clip, setup.experiment.protocol
    indices = np.asarray(seen.facts["indices"], dtype=np.int64)
    count = int(seen.facts["frames_decoded"])
    plan = plan_for(spec, protocol, count)
    is_own = bool(np.array_equal(plan.distinct, indices))
    if not is_own:
        again = plan_for(spec, protocol, len(indices))
        table = tuple(tuple(int(indices[i]) for i in row) for row in again.table)
        plan = SamplingPlan(table, again.policy, count)
    gather = np.searchsorted(indices, np.asarray(plan.table, dtype=np.int64))
    how = f"{plan.policy} {spec.frames}x{spec.stride}x{len(plan.table)} {spec.end}"
    return Decoded(
        id=video_id,
        label=setup.label_map[setup.dataset.item(video_id).label],
        frames=seen.frames,
        gather=torch.as_tensor(gather, dtype=torch.int64),
        facts={**seen.facts, "shown": how if is_own else f"{how} of {len(indices)} frames"},
        seconds=time.perf_counter() - started,
        fps=seen.fps,
        rate=rate_of(setup, seen.fps, plan),
        sample=seen.sample,
        as_attacked=seen,
    )


def target_classes(setup: Setup, source: Setup) -> list[int]:
    """Return the evaluated model's index of each class of the source, for targeted attacks.

    Raises:
        ConfigError: listing the classes that it does not know.
    """
    if not setup.experiment.threat.targeted:
        return []
    ours, theirs = setup.model.labels.names, source.model.labels.names
    if ours == theirs:
        return list(range(len(ours)))
    chosen = setup.experiment.source
    where = f"threat.targeted: source model {chosen.ref if chosen else ''!r}"
    found = match_labels(theirs, ours, where)
    return [found[name] for name in theirs]


class TransferContest:
    """The contest of one group of videos that the source sees with equal shape and plan.

    Args:
        setup: built components, with those of the source.
        videos: the group.
        chunk: clips that pass a model at once.
        stage: told which stage begins, so that a failure can name it.
    """

    def __init__(
        self, setup: Setup, videos: Sequence[Decoded], chunk: int | None, stage: StageFn
    ) -> None:
        found = [video.as_attacked for video in videos if video.as_attacked is not None]
        if setup.source is None or len(found) != len(videos):
            raise ContractViolation("a video was decoded without its source model")
        self.setup = setup
        self.videos = videos
        self.chunk = chunk
        self.stage = stage
        self.attack = Contest(setup.source, found, chunk, stage)
        self.classes = target_classes(setup, setup.source)

    def run(self) -> list[Result]:
        """Return one result a video, in order."""
        made = self.attack.run()
        results: dict[int, Result] = {}
        for places in self._alike():
            shown = _Shown(
                self.setup,
                [self.videos[i] for i in places],
                self.chunk,
                self.stage,
                made=[made[i] for i in places],
                classes=self.classes,
            )
            results.update(zip(places, shown.run(), strict=True))
        return [results[i] for i in range(len(self.videos))]

    def _alike(self) -> list[list[int]]:
        """Return positions of the videos that the evaluated model looks at in the same way."""
        groups: dict[tuple[Any, ...], list[int]] = {}
        for i, video in enumerate(self.videos):
            key = (tuple(video.gather.shape), video.gather.numpy().tobytes(), video.rate)
            groups.setdefault(key, []).append(i)
        return list(groups.values())


class _Shown(Contest):
    """The evaluated model, and its defenses, asked about videos that were attacked before."""

    def __init__(
        self,
        setup: Setup,
        videos: Sequence[Decoded],
        chunk: int | None,
        stage: StageFn,
        *,
        made: Sequence[Result],
        classes: Sequence[int],
    ) -> None:
        super().__init__(setup, videos, chunk, stage)
        self.made = made
        self.classes = classes

    def _attack(
        self, results: list[dict[str, Any]], clean: Draw, clean_defended: list[Draw]
    ) -> Tensor:
        found = [one.adversarial_frames for one in self.made]
        final = torch.stack([frames for frames in found if frames is not None])
        self.stage("eval")
        self.clock.start()
        attacked = self._plain_draw(final, self.reuse.attacked)
        defended = self._defended_draws(final)
        self.clock.stop("eval")
        for i, fields in enumerate(results):
            self._take_over(i, fields)
            fields["attacked"] = attacked.corner(i, self.videos[i].label)
            if defended:
                fields["attacked_defended"] = self._corners(defended, i, listed=True)
            if fields["status"] == "ok":
                self._judge(i, fields, [attacked.predicted()[i]])
        return final

    def _take_over(self, i: int, fields: dict[str, Any]) -> None:
        """Put what the attack did, and what it made of the source, into a video's fields."""
        there = self.made[i].fields
        fields["status"] = there["status"]
        fields["source"] = {key: there[key] for key in OF_THE_SOURCE if key in there}
        fields.update({key: there[key] for key in OF_THE_ATTACK if key in there})
        fields["cost"] = dict(there["cost"])
        if "target" in there:
            fields["target"] = self.classes[there["target"]]
            fields["target_policy"] = there["target_policy"]
        self.flags[i].update(there["flags"])
        self.notes[i].extend(there.get("notes", ()))

    def _result(self, i: int, fields: dict[str, Any], final: Tensor | None) -> Result:
        there = self.made[i].fields["cost"]
        result = super()._result(i, fields, final)
        for key in ("t_clean_s", "t_eval_s"):
            result.fields["cost"][key] += there.get(key, 0.0)
        return result
