"""Which frames of a source an exported file holds, and how the model's clips are cut from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, cast

from vcr_core.errors import StoreError
from vcr_core.specs import AttackSpec

if TYPE_CHECKING:
    from vcr_core.config.experiment import Experiment
    from vcr_core.protocols import Sampler
    from vcr_core.specs import ClipSpec
    from vcr_core.video.sampling import SamplingPlan


@dataclass(frozen=True, slots=True)
class Layout:
    """How a file relates to its source and to the model's clips.

    Attributes:
        indices: position in the source of every frame of the file.
        gather: ``[V, T']`` positions in the file of the frames of each clip.
        fps: frames a second of the file, ``None`` where the source does not say its own.
        rate: frames a second of a clip, for models that have to know it.
        plan: how the source was sampled.
    """

    indices: tuple[int, ...]
    gather: tuple[tuple[int, ...], ...]
    fps: Fraction | None
    rate: float | None
    plan: SamplingPlan

    @property
    def played(self) -> tuple[int, ...]:
        """Positions in the file of all frames of all clips, one clip after the other."""
        return tuple(position for clip in self.gather for position in clip)

    @property
    def is_plain(self) -> bool:
        """Whether the clips are the file, in order."""
        return self.played == tuple(range(len(self.indices)))


@dataclass(frozen=True, slots=True)
class Layouts:
    """Layouts of the video as it was and as the attack left it."""

    clean: Layout
    attacked: Layout


def layouts_of(
    experiment: Experiment, spec: ClipSpec, record: Mapping[str, Any], attack: Any
) -> Layouts:
    """Return how the two videos of a record were sampled.

    Args:
        experiment: the run's experiment.
        spec: how its model samples.
        record: of an evaluated video.
        attack: the attack, used where it changes the sampling.

    Raises:
        StoreError: if the sampling of this version gives other frames than the record names.
    """
    from vcr_core.engine.decode import plan_for

    told = record["input"]
    count = int(told["frames_decoded"])
    fps = None if told.get("fps") is None else Fraction(told["fps"])
    sampler: Sampler = lambda total: plan_for(spec, experiment.protocol, total)  # noqa: E731
    stage = cast("AttackSpec", experiment.attack.spec).stage if experiment.attack else "frames"
    plan = after = sampler(count)
    if stage == "plan":
        plan, after = attack.plans(sampler, count, fps)
    elif stage == "source":
        after = sampler(int(record["transform"]["frames"]))
    _same_frames(plan, told["indices"], record)
    if stage != "frames":
        _same_frames(after, record["transform"]["indices"], record)
    tied = experiment.protocol.tie_frames
    return Layouts(_layout(plan, fps, tied=tied), _layout(after, fps, tied=tied))


def _layout(plan: SamplingPlan, fps: Fraction | None, *, tied: bool) -> Layout:
    from vcr_core.engine.decode import plan_rate

    rate = None if fps is None else plan_rate(fps, plan)
    distinct = [int(index) for index in plan.distinct]
    gather = [[int(position) for position in row] for row in plan.gather]
    if not tied:
        # Every frame of every clip was a frame of its own.
        distinct = [distinct[position] for row in gather for position in row]
        width = len(gather[0])
        gather = [list(range(i * width, (i + 1) * width)) for i in range(len(gather))]
    steps = [b - a for a, b in pairwise(plan.table[0]) if b > a]
    file_fps = None if fps is None else fps / (Fraction(median(steps)) if steps else 1)
    return Layout(tuple(distinct), tuple(map(tuple, gather)), file_fps, rate, plan)


def _same_frames(plan: SamplingPlan, recorded: Sequence[int], record: Mapping[str, Any]) -> None:
    if [int(index) for index in plan.distinct] != list(recorded):
        raise StoreError(
            f"{record['video']}: its record names other frames than the model samples now; "
            "the run was made with another version of the model or of vcr"
        )
