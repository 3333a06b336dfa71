"""Specs: inert records that describe components; importing this module imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, Literal, TypeAlias

Kind: TypeAlias = Literal["model", "attack", "defense", "metric", "dataset", "executor", "reporter"]
KINDS: tuple[Kind, ...] = (
    "model", "attack", "defense", "metric", "dataset", "executor", "reporter",
)  # fmt: skip

Access: TypeAlias = Literal["white-box", "score", "decision", "transfer", "none"]
Norm: TypeAlias = Literal["linf", "l2", "l1", "l0", "none"]
Gradient: TypeAlias = Literal["exact", "surrogate", "none"]
DefenseKind: TypeAlias = Literal["input", "purify", "smooth", "detector", "checkpoint"]
SamplingPolicy: TypeAlias = Literal[
    "center", "uniform_clips", "segment_middle", "dense", "vcrbench", "vcrbench_segments", "all",
    "segment_twice", "segment_offsets", "sparse", "every_stride",
]  # fmt: skip
EndRule: TypeAlias = Literal["loop", "clamp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipSpec:
    """What a model samples from a video and at which size it looks at it.

    Attributes:
        frames: frames per temporal clip, ``T'``; with policy ``all`` the most that are looked at.
        stride: source frames between two frames of a clip.
        clips: temporal clips per video with ``protocol.views = "full"``.
        light_clips: temporal clips per video with ``protocol.views = "light"``.
        crops: spatial crops that the model itself makes of every clip (full views).
        policy: sampling policy, see ``vcr_core.video.sampling``.
        end: what happens past the last frame: ``loop`` (modulo) or ``clamp`` (repeat the last).
        size: side of the square that the network sees, in pixels.
        reduce_to: length in pixels to which the short side of a frame is averaged down when it is
            decoded, before anything else sees it; 0 leaves frames as they are. For models that
            look at every frame of a video, which would not fit into memory.
    """

    frames: int
    stride: int = 1
    clips: int = 1
    light_clips: int = 1
    crops: int = 1
    policy: SamplingPolicy = "uniform_clips"
    end: EndRule = "loop"
    size: int = 224
    reduce_to: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightSpec:
    """One set of weights.

    Attributes:
        variant: name after the dot in ``model.variant``; ``""`` for the model's default.
        url: where the file comes from; ``"package:<import package>/<path>"`` for bundled files.
        sha256: full hash, or the published prefix, or ``""`` when none is published.
        bytes: size of the file, 0 when unknown.
        license: licence of the weights.
        label_space: id of the label space that the head was trained on.
        clean_accuracy: published top-1 accuracy as a fraction, if any.
        clip: what these weights sample from a video; ``None``: what the model's spec says.
        requires: requirement strings besides those of the model.
        extra: what to install when one of them is missing.
        mirrors: further addresses of the same file.
        filename: name on disk where the address does not end with a telling one.
        recipe: what the model's code needs to know, in its own words.
        facts: what ``vcr info model.variant`` shows besides, as pairs of name and text.
        file: where the file lies here; set by the core before it builds the model, ``""`` where
            there is none.
    """

    variant: str = ""
    url: str = ""
    sha256: str = ""
    bytes: int = 0
    license: str = ""
    label_space: str = ""
    clean_accuracy: float | None = None
    clip: ClipSpec | None = None
    requires: tuple[str, ...] = ()
    extra: str | None = None
    mirrors: tuple[str, ...] = ()
    filename: str = ""
    recipe: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentSpec:
    """What every component says about itself.

    Attributes:
        name: canonical name, ``[a-z0-9]+(-[a-z0-9]+)*``, at most 40 characters.
        summary: one line, no full stop.
        target: ``"package.module:Attr"``; imported only when the component is used.
        params: ``"package.module:Struct"``; imported only to validate or to explain.
        requires: requirement strings, checked through installed metadata.
        extra: what to install when a requirement is missing.
        reference: paper or repository URL.
        license: licence of the method or weights where it differs from the package's.
        tags: free words; some select contract checks.
        example: one command line that uses the component.
    """

    kind: ClassVar[Kind]

    name: str
    summary: str
    target: str
    params: str | None = None
    requires: tuple[str, ...] = ()
    extra: str | None = None
    reference: str = ""
    license: str = ""
    tags: frozenset[str] = frozenset()
    example: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec(ComponentSpec):
    """A video classifier. ``weights`` lists the variants; the first one is the default.

    ``label_space`` is ``""`` and ``num_classes`` 0 where parameters decide them. ``unfilled``, a
    target like the model's, builds it with weights of no meaning, to measure what it costs.
    """

    kind: ClassVar[Kind] = "model"

    label_space: str
    num_classes: int
    clip: ClipSpec
    weights: tuple[WeightSpec, ...] = ()
    differentiable: bool = True
    feature_layers: tuple[str, ...] = ()
    unfilled: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A set of corruptions that is evaluated as a whole.

    Attributes:
        name: as reports name it.
        version: another one wherever an output of one of its types changes.
        types: how many types belong to it.
        severities: how many severities each of them has.
    """

    name: str
    version: str
    types: int
    severities: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteMember:
    """That a corruption belongs to a suite.

    Attributes:
        suite: the suite.
        params: parameters, besides the severity, with which it does.
    """

    suite: Suite
    params: tuple[tuple[str, str | int | float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Corruption:
    """What a corruption says about itself; its parameter ``severity`` is 0 for no change.

    Attributes:
        group: kind of damage over which reports average, such as ``noise`` or ``temporal``.
        severities: the worst severity.
        changes_length: whether the result may have another number of frames.
        member_of: suites that it belongs to.
    """

    group: str
    severities: int = 5
    changes_length: bool = False
    member_of: tuple[SuiteMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackSpec(ComponentSpec):
    """An attack. ``stage`` and ``corruption`` matter with access ``none`` only.

    Attributes:
        corruption: what a corruption in severities says about itself.
        prepares: whether there is an offline step.
        prepares_when: a parameter and its value without which a run needs no offline step; absent
            if every run needs it.
    """

    kind: ClassVar[Kind] = "attack"

    access: Access
    norms: frozenset[str]
    stage: Literal["frames", "source", "plan"] = "frames"
    targeted: bool = False
    untargeted: bool = True
    prepares: bool = False
    prepares_when: tuple[str, str] | None = None
    stochastic: bool = False
    corruption: Corruption | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DefenseSpec(ComponentSpec):
    """A defense. ``gradient`` is what an adaptive attacker gets through it.

    ``defense_kind``: ``input`` changes the clips, ``purify`` does so with a generative model,
    ``smooth`` votes over draws, ``detector`` scores and rejects, ``checkpoint`` puts other weights
    in the place of the model's. ``certifies``: its parameter ``certify_n``, where above 0, asks for
    a certificate of every clean video. ``prepares``: there is an offline step. ``changes_labels``:
    a video may belong to another class afterwards. ``cost``: what it adds to a prediction, in
    words.
    """

    kind: ClassVar[Kind] = "defense"

    defense_kind: DefenseKind = "input"
    stochastic: bool = False
    gradient: Gradient = "exact"
    preserves_time: bool = True
    changes_labels: bool = False
    cost: str = ""
    certifies: bool = False
    prepares: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec(ComponentSpec):
    """A metric of a pair of clips.

    Attributes:
        higher_is_better: direction of every key.
        unit: of every key, ``""`` for plain numbers.
        identity_value: what identical clips score; ``None`` where that is undefined.
        identity_slack: how far from it identical clips may score, for metrics without a fixed one.
        symmetric: whether exchanging the clips changes nothing.
        needs: ``video`` if the order of frames matters.
        keys: what it reports; the component's name if empty.
        value_range: lowest and highest possible value, ``None`` where there is none.
        per_frame: whether readings have one value a frame.
        min_size: shorter side in pixels below which there is no value.
        needs_weights: whether it stands on a trained network.
        weights: files of that network by variant; the component is then called as
            ``Target(params, folders)`` with the folders to look into first.
        differentiable: whether it offers ``distance`` for attacks.
        concurrent: whether it measures outside of the device and of the calling thread, such as
            in a process of its own: it draws nothing from global generators, gives the same for
            copies on the CPU, and may be asked from several threads, for several videos at once,
            while the device works. See ``runtime.overlap_metrics``.
    """

    kind: ClassVar[Kind] = "metric"

    higher_is_better: bool
    unit: str = ""
    identity_value: float | None = None
    identity_slack: float = 0.0
    symmetric: bool = True
    needs: Literal["frames", "video"] = "frames"
    keys: tuple[str, ...] = ()
    value_range: tuple[float | None, float | None] = (None, None)
    per_frame: bool = False
    min_size: int = 1
    needs_weights: bool = False
    weights: tuple[WeightSpec, ...] = ()
    differentiable: bool = False
    concurrent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSpec(ComponentSpec):
    """A dataset. ``label_space`` may depend on parameters; then it is ``""``."""

    kind: ClassVar[Kind] = "dataset"

    label_space: str = ""
    generated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorSpec(ComponentSpec):
    """A way to run shards.

    ``remote`` says that shards run where this machine's cores and devices do not count.
    """

    kind: ClassVar[Kind] = "executor"

    remote: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReporterSpec(ComponentSpec):
    """A way to show runs; ``format`` is the word after ``vcr report --format``."""

    kind: ClassVar[Kind] = "reporter"

    format: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetSource:
    """A folder of TOML presets inside an import package."""

    package: str
    folder: str = "presets"


def to_plain(value: Any) -> Any:
    """Return ``value`` (a spec or a part of one) as JSON-ready data with sorted sets."""
    if is_dataclass(value) and not isinstance(value, type):
        plain = {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
        if isinstance(value, ComponentSpec):
            plain = {"kind": value.kind, **plain}
        return plain
    if isinstance(value, frozenset | set):
        return sorted(to_plain(v) for v in value)
    if isinstance(value, tuple | list):
        return [to_plain(v) for v in value]
    return value
