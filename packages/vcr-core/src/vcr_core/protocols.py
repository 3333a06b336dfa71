"""The contracts between the core and its components. Importing this module needs no torch.

Two tensors appear everywhere, float32 in [0, 1], RGB:

* **video** ``[B, T, C, H, W]``: the distinct source frames that a sampling plan uses;
* **clips** ``[B, V, T', C, H, W]``: what the plan gathers from a video.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from vcr_core.classifiers import BaseVideoClassifier as BaseVideoClassifier
from vcr_core.classifiers import DetailedClassifier as DetailedClassifier
from vcr_core.classifiers import TimedClassifier as TimedClassifier
from vcr_core.classifiers import VideoClassifier as VideoClassifier
from vcr_core.classifiers import ViewedClassifier as ViewedClassifier
from vcr_core.offline import Preparable as Preparable
from vcr_core.offline import PrepareContext as PrepareContext
from vcr_core.offline import PreparedDefense as PreparedDefense
from vcr_core.offline import TrainingBatch as TrainingBatch
from vcr_core.specs import ClipSpec as ClipSpec
from vcr_core.transforms import PlanTransform as PlanTransform
from vcr_core.transforms import SourceTransform as SourceTransform
from vcr_core.transforms import TransformContext as TransformContext
from vcr_core.transforms import Transformed as Transformed
from vcr_core.transforms import WholeVideo as WholeVideo

if TYPE_CHECKING:
    from fractions import Fraction

    from torch import Tensor

    from vcr_core.goals import Goals
    from vcr_core.randomness import VideoRandom
    from vcr_core.threat import ThreatModel
    from vcr_core.victim import Victim
    from vcr_core.video.info import Clip
    from vcr_core.video.sampling import SamplingPlan

Sampler: TypeAlias = "Callable[[int], SamplingPlan]"
ClipFn: TypeAlias = "Callable[[Tensor], Tensor]"
"""From clips ``[B, V, T', C, H, W]`` to aggregated log-probabilities ``[B, K]``."""
VideoFn: TypeAlias = "Callable[[Tensor], Tensor]"
"""From videos ``[B, T, C, H, W]`` to aggregated log-probabilities ``[B, K]``."""


@dataclass(frozen=True, slots=True)
class LabelSpace:
    """An ordered list of class names with an id that says which list it is."""

    id: str
    names: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of classes."""
        return len(self.names)


class VideoSource(Protocol):
    """Where the frames of one video come from. Opening happens in ``read`` only."""

    @property
    def name(self) -> str:
        """Path or generator id, for messages and records."""
        ...

    def read(self, sampler: Sampler) -> Clip:
        """Decode what the sampler's plan uses.

        Raises:
            VideoReadError: with path and stage; never a half-empty result.
        """
        ...

    def sha256(self) -> str | None:
        """Return the content's hash, or ``None`` where the content cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class VideoItem:
    """One labelled video of a dataset; nothing has been decoded.

    Attributes:
        id: unique and stable in the dataset, ``/`` as separator.
        label: index in the dataset's label space.
        source: where the frames come from.
        group: id of the recording that the video was made from, where several videos were; those
            of one group are never divided between evaluation and training.
        facts: what the dataset knows of the video without decoding it, plain data; goes into the
            record's ``sample``, with :attr:`vcr_core.video.info.Clip.facts` on top.
    """

    id: str
    label: int
    source: VideoSource
    group: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sample(self) -> dict[str, Any]:
        """The record's ``sample`` as far as it is known before decoding."""
        return {**({"source": self.group} if self.group else {}), **self.facts}


@runtime_checkable
class VideoDataset(Protocol):
    """A labelled collection of videos.

    With ``runtime.prefetch`` its items are asked for, and their sources read, in another thread
    than the one that made it; one video is read at a time. Reading draws nothing from the global
    random generators, which at that moment belong to an attack.
    """

    @property
    def labels(self) -> LabelSpace:
        """The classes that videos are labelled with."""
        ...

    def ids(self) -> Sequence[str]:
        """Return every id, each once, in an order that depends on nothing but the ids."""
        ...

    def item(self, video_id: str) -> VideoItem:
        """Return one video without decoding it.

        Raises:
            KeyError: for an id that :meth:`ids` does not list.
        """
        ...


@runtime_checkable
class Defense(Protocol):
    """A function to a function; it never patches a model."""

    def wrap(self, predict: ClipFn, random: VideoRandom) -> ClipFn:
        """Return the defended prediction function.

        Args:
            predict: clips to aggregated log-probabilities ``[B, K]``. It also takes several draws
                at once: of ``[n * B, …]``, row ``d * B + b`` is draw ``d`` of video ``b``.
            random: one generator per video; the only permitted source of randomness. Draw inside
                the returned function.
        """
        ...


@runtime_checkable
class VideoDefense(Protocol):
    """What a defense may offer besides ``wrap``: to change the video instead of its clips.

    Used where the defense is the first one of the chain, so that what it does happens once to
    every source frame, before clips that share frames are gathered.
    """

    def wrap_video(self, predict: VideoFn, random: VideoRandom) -> VideoFn:
        """Return the defended prediction function of videos.

        Args:
            predict: videos ``[B, T, C, H, W]`` to aggregated log-probabilities ``[B, K]``; several
                draws at once as in :meth:`Defense.wrap`.
            random: one generator per video. Draw inside the returned function.
        """
        ...


@runtime_checkable
class SurrogateDefense(Protocol):
    """What a defense offers that does more than to change the clips and has no exact gradient.

    A vote over several candidates, for instance: what an adaptive attacker differentiates is then
    the whole vote, not the one candidate of :meth:`InputDefense.apply`.
    """

    def wrap_surrogate(self, predict: ClipFn, random: VideoRandom) -> ClipFn:
        """Return a function with the values of :meth:`Defense.wrap` and a stand-in's gradient.

        Args:
            predict: as for :meth:`Defense.wrap`.
            random: as for :meth:`Defense.wrap`; equal seeds give equal values.
        """
        ...


@runtime_checkable
class Certifier(Protocol):
    """What a defense may offer besides: a guarantee about the prediction on one video.

    The guarantee is about the video, so only the first defense of a chain can give one.
    """

    @property
    def certifies(self) -> bool:
        """Whether its parameters ask for certificates."""
        ...

    def certify(
        self, predict: VideoFn, video: Tensor, random: VideoRandom
    ) -> Sequence[Mapping[str, Any]]:
        """Return a certificate of each video, as :class:`vcr_core.record_schema.Certificate`.

        Args:
            predict: what follows the defense, as for :meth:`VideoDefense.wrap_video`.
            video: ``[B, T, C, H, W]``, clean.
            random: one generator per video, seed role ``certify``.
        """
        ...


@runtime_checkable
class Checkpoint(Protocol):
    """What a defense is that puts other weights in the place of the model's."""

    def checkpoint(self, model: str) -> str:
        """Return the reference of the model that stands in for ``model``.

        Args:
            model: reference of the undefended model, ``name`` or ``name.variant``.
        """
        ...


@runtime_checkable
class DetailedFn(Protocol):
    """What the function that :meth:`Defense.wrap` returns may be besides a function.

    A defense that votes, abstains or rejects returns an object that is called like a function and
    keeps the facts of its last call; they go into the record beside the prediction. The object is
    made anew for every prediction, so the defense itself stays without state.
    """

    def __call__(self, clips: Tensor) -> Tensor:
        """Return log-probabilities ``[B, K]`` of clips ``[B, V, T', C, H, W]``."""
        ...

    def details(self) -> Sequence[Mapping[str, Any]]:
        """Return facts for each video of the last call.

        Keys as in :class:`vcr_core.record_schema.Corner`: ``votes`` (class to number of votes),
        ``abstained``, ``score``, ``rejected``.
        """
        ...


class InputDefense(ABC):
    """Base class of defenses that change the clips and nothing else."""

    @abstractmethod
    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return defended clips: same shape, float32 in [0, 1], a new tensor.

        Args:
            clips: ``[B, V, T', C, H, W]``.
            random: one generator per video ``b``.
        """

    def surrogate(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return a differentiable stand-in for the backward pass; identity by default (BPDA).

        Athalye, Carlini, Wagner, ICML 2018, section 4.1.
        """
        return clips

    def wrap(self, predict: ClipFn, random: VideoRandom) -> ClipFn:
        """Return ``predict`` after :meth:`apply`."""
        return lambda clips: predict(self.apply(clips, random))


BaseDefense = InputDefense


@dataclass(slots=True)
class AttackContext:
    """What an attack may use besides the victim. Rows index the videos of the batch.

    Attributes:
        threat: the threat model; ``threat.project`` is the attack's own projection.
        random: one generator per video (role ``attack``), drawn on the CPU.
        ids: video ids of the batch.
        log: ``log(rows, eps=…)`` records radii that an attack chose for single videos, and
            ``log(rows, achieved=…)`` claims success, which the core checks; optional.
        surrogates: loads a metered surrogate model by registry name.
        image_models: loads an image network by name; see :mod:`vcr_core.image_models`.
        folder: prepared artifacts of this attack, if it has an offline step.
    """

    threat: ThreatModel
    random: VideoRandom
    ids: Sequence[str]
    log: Callable[..., None] = lambda *_, **__: None
    surrogates: Callable[[str], Victim] | None = None
    image_models: Callable[[str], Any] | None = None
    folder: Path | None = None

    def surrogate(self, name: str) -> Victim:
        """Return a metered surrogate model.

        Raises:
            ContractViolation: if the attack's access is not ``transfer``.
        """
        if self.surrogates is None:
            from vcr_core.errors import ContractViolation

            raise ContractViolation(
                f"a surrogate ({name!r}) was asked for by an attack whose access is not 'transfer'"
            )
        return self.surrogates(name)

    def image_model(self, name: str) -> Any:
        """Return an image model by name.

        Raises:
            ContractViolation: where none can be had.
        """
        if self.image_models is None:
            from vcr_core.errors import ContractViolation

            raise ContractViolation(f"no image model {name!r} is available to this attack")
        return self.image_models(name)


@runtime_checkable
class Attack(Protocol):
    """Configured once by its ``Params``, stateless between videos."""

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return perturbed videos.

        Args:
            victim: metered access to the model under attack.
            video: ``[B, T, C, H, W]``, float32 in [0, 1]; not to be modified.
            goals: what counts as success for each video.
            ctx: threat model, random generators, trace.

        Returns:
            Same shape, dtype and device.
        """
        ...


class BaseVideoAttack(ABC):
    """Optional base class of attacks."""

    @abstractmethod
    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return perturbed videos; see :class:`Attack`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipInfo:
    """What a metric may know about the pair it is given.

    Attributes:
        video: video id.
        fps: frames per second of the source, if known.
        seed: seed of role ``metric``.
        clips: how many clips of equal length the frames are, one after another. More than 1 with
            ``protocol.tie_frames = false`` only; what compares neighbouring frames stays inside.
    """

    video: str = ""
    fps: Fraction | None = None
    seed: int = 0
    clips: int = 1


@dataclass(frozen=True, slots=True)
class Reading:
    """A metric's value with what a reader needs when it is missing.

    Attributes:
        value: ``None`` where it could not be computed.
        reason: why ``value`` is ``None``, e.g. ``identical`` or ``frame smaller than window``.
        per_frame: one value a frame, where the metric has them.
        by: library, version and weights that computed it, where it is not the metric's own code.
    """

    value: float | None
    reason: str = ""
    per_frame: tuple[float | None, ...] = field(default=())
    by: str = ""


@runtime_checkable
class Metric(Protocol):
    """A measure of one pair of videos."""

    def measure(
        self, reference: Tensor, test: Tensor, info: ClipInfo
    ) -> Mapping[str, float | Reading | None]:
        """Return values by key (the spec's ``keys``; the component's name if it has only one).

        Args:
            reference: ``[T, C, H, W]`` float32 in [0, 1], clean.
            test: same shape, what the attack left, rounded as stored.
            info: facts about the pair.
        """
        ...


@runtime_checkable
class DifferentiableMetric(Protocol):
    """What a metric may offer beside ``measure``, for attacks that minimise it."""

    def distance(self, reference: Tensor, test: Tensor) -> Tensor:
        """Return ``[B]``: how far apart videos are, 0 for equal ones, the mean over frames.

        Args:
            reference: ``[B, T, C, H, W]`` float32 in [0, 1]; no gradient is needed.
            test: same shape; the result is differentiable with respect to it. It is not rounded.

        Raises:
            IncompatibleComponents: for frames that the metric cannot compare.
        """
        ...


@dataclass(frozen=True, slots=True)
class ShardTask:
    """A share of a run: batches ``i`` with ``i % count == index``.

    Attributes:
        folder: the run folder.
        index: which share.
        count: of how many.
        device: where to compute.
        threads: CPU threads, for runs whose manifest does not say.
        retry_below: do videos again whose last attempt is below this number and failed.
    """

    folder: Path
    index: int
    count: int
    device: str = "auto"
    threads: int = 0
    retry_below: int = 0


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """How a shard ended.

    Attributes:
        task: which one.
        ok: whether nothing is left to do of it.
        message: why not; ``interrupted`` where somebody asked to stop.
    """

    task: ShardTask
    ok: bool
    message: str = ""


@runtime_checkable
class Executor(Protocol):
    """Runs shards as processes or in place; knows nothing of models.

    The shards of a sweep come together: those of equal ``index`` form a lane
    (:func:`vcr_core.executors.lanes.lanes_of`). One worker that goes through a lane in the given
    order loads each model once and finds the attacks that it has to take over; any other order
    gives the same records. An executor that knows how many workers there is room for may have a
    method ``capacity() -> int``, asked where ``executor.workers`` is 0.
    """

    def run(self, shards: Sequence[ShardTask]) -> Iterator[ShardStatus]:
        """Yield a status as each shard ends."""
        ...


@runtime_checkable
class Reporter(Protocol):
    """Shows runs.

    One with an attribute ``details = False`` is given records without traces, values of single
    frames, seeds and tracebacks, which take half the memory.
    """

    def render(self, runs: Sequence[Any], out: Path) -> Sequence[Path]:
        """Write files for these runs (:class:`vcr_core.summary.RunView`) and return their paths."""
        ...
