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

    name: str = "motion"
    subset: Annotated[str, Meta(description="subset manifest: a name or a path")] | None = None
    rule: Literal["hash", "shuffle", "stratified", "list"] = "hash"
    limit: Positive | None = None


class ThreatConfig(Table, frozen=True, kw_only=True):
    """``[threat]``: what the adversary may do."""

    norm: Literal["linf", "l2", "l1", "l0", "none"] = "linf"
    eps: Annotated[
        float, Meta(ge=0, description="radius; a fraction of the pixel range for linf ('8/255')")
    ] = 8 / 255
    targeted: bool = False
    target: Literal["least-likely", "random", "next", "second"] | Annotated[int, Meta(ge=0)] = (
        "least-likely"
    )
    max_forwards: Positive | None = None
    max_backwards: Positive | None = None
    frames: Annotated[
        list[int] | int | None,
        Meta(description="frames that may change: their positions, or how many (evenly spaced)"),
    ] = None
    per_frame_eps: list[Eps] | None = None
    region: Annotated[
        list[Fraction01] | None, Meta(description="top, left, bottom, right as fractions")
    ] = None
    quantize: bool = True


class ProtocolConfig(Table, frozen=True, kw_only=True):
    """``[protocol]``: how the contest is judged."""

    attacker_knows_defense: bool = True
    gradient: Literal["auto", "exact", "surrogate", "none"] = "auto"
    eot: Positive = 1
    eval_repeats: Positive = 5
    views: Literal["light", "full"] = "light"
    space: Literal["source", "input"] = "source"
    tie_frames: bool = True
    stop: Literal["first_success", "budget", "confidence"] = "first_success"
    confidence: Fraction01 = 0.5
    confirm: Positive = 3


class MetricsConfig(Table, frozen=True, kw_only=True):
    """``[metrics]``: which distances are recorded; each may have a table of its own."""

    names: list[str] = field(default_factory=lambda: ["mse", "psnr", "ssim"])
    params: dict[str, dict[str, Any]] = field(default_factory=dict)


class PathsConfig(Table, frozen=True, kw_only=True):
    """``[paths]``: where things are on this machine; never part of an experiment's identity."""

    results: str = "results"
    cache: str | None = None
    weights: str | None = None
    datasets: dict[str, str] = field(default_factory=dict)


class RuntimeConfig(Table, frozen=True, kw_only=True):
    """``[runtime]``: how this machine runs it; may change the last bits and nothing else."""

    device: str = "auto"
    batch_videos: Positive = 8
    chunk_clips: Annotated[
        Positive | None, Meta(description="clips that pass the model at once; absent = all")
    ] = None
    threads: Annotated[int, Meta(ge=0)] = 0
    deterministic: bool | Literal["warn"] = False
    max_errors: Annotated[
        float, Meta(ge=0, description="a fraction below 1, or a count from 1 on")
    ] = 0.05
    video_time_limit_s: Annotated[float, Meta(gt=0)] | None = None


class ExecutorConfig(Table, frozen=True, kw_only=True):
    """``[executor]``: who runs the shards."""

    name: str = "inline"
    workers: Annotated[int, Meta(ge=0, description="0 = one per device or core")] = 0


class OutputConfig(Table, frozen=True, kw_only=True):
    """``[output]``: what is kept beside the records."""

    keep_clips: Annotated[
        int, Meta(ge=0, description="videos whose clean and adversarial frames are kept")
    ] = 4


class RunFile(Table, frozen=True, kw_only=True):
    """Every table a run file may have. ``defense`` is one table or a list of tables (a chain)."""

    schema: Literal[1] = 1
    seed: Annotated[int, Meta(ge=0)] = 42
    dataset: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    attack: dict[str, Any] | UnsetType = UNSET
    defense: dict[str, Any] | list[dict[str, Any]] | UnsetType = UNSET
    threat: ThreatConfig = field(default_factory=ThreatConfig)
    protocol: ProtocolConfig = field(default_factory=ProtocolConfig)
    metrics: MetricsConfig = field(default_factory=MetricsConfig)
    paths: PathsConfig = field(default_factory=PathsConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)
    executor: ExecutorConfig = field(default_factory=ExecutorConfig)
    output: OutputConfig = field(default_factory=OutputConfig)
