"""The tables of a run file; component parameters sit in the same tables and have own structs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

Eps = Annotated[float, Meta(ge=0, le=1, description="fraction of the pixel range, as '8/255'")]
Positive = Annotated[int, Meta(ge=1)]
Fraction01 = Annotated[float, Meta(ge=0, le=1)]


class Table(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A table whose unknown keys are errors."""


class DatasetKeys(Table, frozen=True, kw_only=True):
    """The core's own keys of ``[dataset]``; all others are the dataset's parameters."""

    name: Annotated[str, Meta(description="reference of the dataset")] = "motion"
    subset: Annotated[str, Meta(description="subset manifest: a name or a path")] | None = None
    rule: Annotated[
        Literal["hash", "shuffle", "stratified", "list"],
        Meta(description="order: by a hash of seed and id, shuffled, classes in turn, as listed"),
    ] = "hash"
    limit: Annotated[Positive | None, Meta(description="number of videos; absent = all")] = None


class ThreatConfig(Table, frozen=True, kw_only=True):
    """``[threat]``: what the adversary may do."""

    norm: Annotated[
        Literal["linf", "l2", "l1", "l0", "none"],
        Meta(description="what eps bounds; none for methods that have no norm"),
    ] = "linf"
    eps: Annotated[
        float, Meta(ge=0, description="radius; a fraction of the pixel range for linf ('8/255')")
    ] = 8 / 255
    targeted: Annotated[
        bool, Meta(description="whether a given class has to be reached instead of any other one")
    ] = False
    target: Annotated[
        Literal["least-likely", "random", "next", "second"] | Annotated[int, Meta(ge=0)],
        Meta(description="how the target is chosen for each video, or one class for all"),
    ] = "least-likely"
    max_forwards: Annotated[
        Positive | None,
        Meta(description="forward passes per video that the attack may spend; absent = no limit"),
    ] = None
    max_backwards: Annotated[
        Positive | None,
        Meta(description="gradients per video that the attack may spend; absent = no limit"),
    ] = None
    frames: Annotated[
        list[int] | int | None,
        Meta(description="frames that may change: their positions, or how many (evenly spaced)"),
    ] = None
    per_frame_eps: Annotated[
        list[Eps] | None, Meta(description="an linf radius per frame, instead of eps")
    ] = None
    region: Annotated[
        list[Fraction01] | None, Meta(description="top, left, bottom, right as fractions")
    ] = None
    quantize: Annotated[
        bool, Meta(description="judge the video as stored, with 8 bits a value")
    ] = True


class ProtocolConfig(Table, frozen=True, kw_only=True):
    """``[protocol]``: how the contest is judged."""

    attacker_knows_defense: Annotated[
        bool, Meta(description="adaptive: the attack queries the defended model")
    ] = True
    gradient: Annotated[
        Literal["auto", "exact", "surrogate", "none"],
        Meta(description="what an adaptive attack gets through a defense; auto = its best"),
    ] = "auto"
    eot: Annotated[
        Positive, Meta(description="draws of a random defense over which gradients are averaged")
    ] = 1
    eval_repeats: Annotated[
        Positive, Meta(description="draws with which a random defense is judged")
    ] = 5
    labels: Annotated[
        Literal["dataset", "clean-prediction"],
        Meta(
            description="what counts as right: the dataset's classes, or what the bare model says "
            "of each clean video"
        ),
    ] = "dataset"
    views: Annotated[
        Literal["light", "full"], Meta(description="the model's few or many clips per video")
    ] = "light"
    space: Annotated[
        Literal["source", "input"],
        Meta(description="attack at source resolution, or at the size that the model sees"),
    ] = "source"
    tie_frames: Annotated[
        bool, Meta(description="one perturbation per source frame, as a real video has")
    ] = True
    stop: Annotated[
        Literal["first_success", "budget", "confidence"],
        Meta(description="when the attack ends for a video"),
    ] = "first_success"
    confidence: Annotated[
        Fraction01, Meta(description="target probability that stop = 'confidence' asks for")
    ] = 0.5
    confirm: Annotated[
        Positive, Meta(description="fresh draws that confirm a success on a random defense")
    ] = 3
    autocast: Annotated[
        Literal["off", "bfloat16", "float16"],
        Meta(
            description="precision in which torch computes the evaluated model's passes; changes "
            "every number, so it makes another experiment"
        ),
    ] = "off"


class MetricsConfig(Table, frozen=True, kw_only=True):
    """``[metrics]``: which distances are recorded; each may have a table of its own."""

    names: Annotated[list[str], Meta(description="references of metrics")] = field(
        default_factory=lambda: ["mse", "psnr", "ssim"]
    )
    params: Annotated[dict[str, dict[str, Any]], Meta(description="parameters by metric")] = field(
        default_factory=dict
    )


class PrepareConfig(Table, frozen=True, kw_only=True):
    """``[prepare]``: what the offline step of an attack is made from; read where there is one."""

    videos: Annotated[
        Positive,
        Meta(description="training videos: the next ones in the order of the evaluated ones"),
    ] = 64
    allow_overlap: Annotated[
        bool,
        Meta(description="fill up with evaluated videos where the dataset has too few others"),
    ] = False


class PathsConfig(Table, frozen=True, kw_only=True):
    """``[paths]``: where things are on this machine; never part of an experiment's identity."""

    results: Annotated[str, Meta(description="folder of all runs")] = "results"
    cache: Annotated[str | None, Meta(description="folder of caches; absent = the user's")] = None
    weights: Annotated[
        str | None, Meta(description="folder of weight files; absent = in the cache")
    ] = None
    datasets: Annotated[dict[str, str], Meta(description="root folder by dataset")] = field(
        default_factory=dict
    )


class RuntimeConfig(Table, frozen=True, kw_only=True):
    """``[runtime]``: how this machine runs it; may change the last bits and nothing else."""

    device: Annotated[str, Meta(description="auto = the first GPU, else the CPU")] = "auto"
    batch_videos: Annotated[
        Positive | Literal["auto"],
        Meta(
            description="videos in a planned batch; fixed when a run is made; auto = what fits "
            "into memory, measured once per model and device"
        ),
    ] = 8
    chunk_clips: Annotated[
        Positive | Literal["auto"] | None,
        Meta(
            description="clips that pass the model at once; absent = all; auto = what fits into "
            "memory, measured once per model and device"
        ),
    ] = None
    prefetch: Annotated[
        Annotated[int, Meta(ge=0)] | Literal["auto"],
        Meta(
            description="batches that are decoded while the device works on an earlier one; "
            "changes no number; auto = 1 on a GPU, else 0"
        ),
    ] = "auto"
    overlap_metrics: Annotated[
        bool | Literal["auto"],
        Meta(
            description="measure metrics that need no device while the model judges; changes no "
            "number; auto = on a GPU"
        ),
    ] = "auto"
    compile: Annotated[
        bool,
        Meta(description="let torch.compile take the model's network; may change the last bits"),
    ] = False
    channels_last: Annotated[
        bool,
        Meta(
            description="order the weights of convolutions with the channels last; may change the "
            "last bits"
        ),
    ] = False
    threads: Annotated[int, Meta(ge=0, description="CPU threads of torch; 0 = its choice")] = 0
    deterministic: Annotated[
        bool | Literal["warn"],
        Meta(description="insist on deterministic algorithms, or warn where there is none"),
    ] = False
    max_errors: Annotated[
        float, Meta(ge=0, description="a fraction below 1, or a count from 1 on")
    ] = 0.05
    video_time_limit_s: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="seconds after which a video becomes an error; absent = no limit"),
    ] = None
    reuse: Annotated[
        bool | Literal["auto"],
        Meta(
            description="attack once, judge many defenses: take clips of an equal attack from the "
            "cache and keep new ones; auto = keep them only in sweeps that need them again"
        ),
    ] = "auto"
    reuse_gb: Annotated[
        float, Meta(ge=0, description="gigabytes that the cache of reused clips may take")
    ] = 20.0


class ExecutorConfig(Table, frozen=True, kw_only=True):
    """``[executor]``: who runs the shards."""

    name: Annotated[str, Meta(description="reference of the executor")] = "inline"
    workers: Annotated[int, Meta(ge=0, description="0 = one per device or core")] = 0


class OutputConfig(Table, frozen=True, kw_only=True):
    """``[output]``: what is kept beside the records."""

    keep_clips: Annotated[
        int, Meta(ge=0, description="videos whose clean and adversarial frames are kept")
    ] = 4


class RunFile(Table, frozen=True, kw_only=True):
    """Every table a run file may have. ``defense`` is one table or a list of tables (a chain).

    ``source`` is a model as in ``[model]``: the one that the attack is computed on, where that is
    not the evaluated one.
    """

    schema: Literal[1] = 1
    seed: Annotated[int, Meta(ge=0)] = 42
    dataset: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    source: dict[str, Any] | UnsetType = UNSET
    attack: dict[str, Any] | UnsetType = UNSET
    defense: dict[str, Any] | list[dict[str, Any]] | UnsetType = UNSET
    threat: ThreatConfig = field(default_factory=ThreatConfig)
    protocol: ProtocolConfig = field(default_factory=ProtocolConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    prepare: PrepareConfig = field(default_factory=PrepareConfig)
    paths: PathsConfig = field(default_factory=PathsConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)
    executor: ExecutorConfig = field(default_factory=ExecutorConfig)
    output: OutputConfig = field(default_factory=OutputConfig)
