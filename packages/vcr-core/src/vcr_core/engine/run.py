"""A run: its folder, its plan, and the making of the records that are missing."""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from vcr_core.atomic import write_text
from vcr_core.components import build, weights_of
from vcr_core.config.identity import run_id
from vcr_core.config.resolve import Resolved, resolve_run
from vcr_core.corruption import nature
from vcr_core.engine.artifact import required_artifact
from vcr_core.engine.clips import write_index
from vcr_core.engine.fitting import fitted_batch
from vcr_core.engine.machine import run_document, write_machine
from vcr_core.engine.models import guarded_model, runtime_options
from vcr_core.engine.setup import Parts, build_dataset, choose_device
from vcr_core.engine.shard import run_shard, set_determinism
from vcr_core.engine.subset import fingerprint, select_videos
from vcr_core.environment import command_line, environment
from vcr_core.errors import StoreError, UsageError
from vcr_core.health import run_flags
from vcr_core.manifest import (
    finish_manifest,
    new_manifest,
    planned_videos,
    read_manifest,
    update_manifest,
    write_manifest,
)
from vcr_core.plan import pending_batches, plan_batches
from vcr_core.plugins import registry
from vcr_core.protocols import ShardTask
from vcr_core.records import read_records
from vcr_core.specs import AttackSpec, ModelSpec
from vcr_core.summary import write_summary
from vcr_core.weights.places import folders_of

if TYPE_CHECKING:
    from vcr_core.artifacts import Artifact
    from vcr_core.config.experiment import Chosen, Experiment
    from vcr_core.manifest import RunStatus
    from vcr_core.protocols import Executor, VideoDataset

logger = logging.getLogger(__name__)

HASHED_AT_START = 1000
"""Up to so many videos the fingerprint of a run covers their content, not only their ids."""


@dataclass(frozen=True, slots=True)
class Run:
    """An opened run.

    Attributes:
        folder: where it lives.
        manifest: ``run.json`` as it was when opened.
        experiment: what it evaluates.
        pending: numbers of the batches that are missing.
        parts: in-memory components, for runs from Python.
    """

    folder: Path
    manifest: dict[str, Any]
    experiment: Experiment
    pending: tuple[int, ...]
    parts: Parts | None = None

    @property
    def name(self) -> str:
        """The run id."""
        return str(self.manifest["run"])

    @property
    def total(self) -> int:
        """Number of planned videos."""
        return len(planned_videos(self.manifest))

    @property
    def missing(self) -> int:
        """Number of videos in batches that are missing."""
        return sum(len(self.manifest["batches"][number]) for number in self.pending)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call of :func:`execute` ended.

    Attributes:
        status: ``done``, ``interrupted`` or ``failed``.
        exit_code: 0; 1 when more videos failed than allowed; 130 when interrupted.
        summary: the derived summary.
        message: what a user should know when it is not 0.
    """

    status: str
    exit_code: int
    summary: dict[str, Any]
    message: str = ""


def open_run(
    resolved: Resolved,
    *,
    parts: Parts | None = None,
    results: Path | None = None,
    folder: Path | None = None,
    retry_errors: bool = False,
) -> Run:
    """Create the folder of an experiment, or find the one it already has.

    Args:
        resolved: the experiment.
        parts: in-memory components.
        results: folder of all runs; ``paths.results`` by default.
        folder: an existing run folder to go on with, wherever it lies.
        retry_errors: count batches with errors as missing.

    Raises:
        StoreError: if the folder belongs to another experiment, or its videos changed.
    """
    experiment = resolved.experiment
    dataset = parts.dataset if parts and parts.dataset is not None else build_dataset(experiment)
    videos = select_videos(experiment, dataset)
    name, full_hash = run_id(resolved.identity, videos)
    where = folder or (results or Path(experiment.paths.results)) / name
    hashes = _content_hashes(dataset, videos)
    print_of = fingerprint(videos, hashes)
    records = read_records(where) if (where / "run.json").is_file() else []
    if (where / "run.json").is_file():
        manifest = read_manifest(where)
        experiment = _as_begun(experiment, manifest)
        if manifest["experiment_hash"] != full_hash:
            raise StoreError(_other_experiment(where, manifest, [v for v, _ in videos]))
        if manifest["dataset"]["fingerprint"] != print_of:
            _refuse_changed_videos(where, dataset)
            # Videos without a result yet may have been mended since.
            manifest["dataset"]["fingerprint"] = print_of
            write_manifest(where, manifest)
        if pending_batches(manifest["batches"], records, retry_errors=retry_errors):
            artifact = required_artifact(experiment, dataset, parts)
            _refuse_changed_artifact(where, manifest, artifact)
    else:
        artifact = required_artifact(experiment, dataset, parts)
        batch_videos = _batch_videos(experiment, dataset, [v for v, _ in videos], parts)
        manifest = new_manifest(
            run=name,
            experiment=_tables(resolved),
            experiment_hash=full_hash,
            components=[
                _described(role, chosen, artifact, folders_of(experiment.paths))
                for role, chosen in _components(experiment)
            ],
            dataset={
                "name": experiment.dataset.ref,
                "fingerprint": print_of,
                "content_hashed": len(videos) <= HASHED_AT_START,
                "label_space": dataset.labels.id,
                "labels": list(_label_names(experiment, dataset, parts)),
                "n": len(videos),
            },
            batches=plan_batches([v for v, _ in videos], batch_videos),
            batch_videos=batch_videos,
            threads=planned_threads(experiment),
            runtime_options=runtime_options(experiment),
            environment=environment(
                {chosen.distribution for _, chosen in _components(experiment)}, with_torch=True
            ),
            command=command_line(),
            plugin_failures=[
                {"distribution": f.distribution, "version": f.version, "stage": f.stage,
                 "error": str(f.error)}
                for f in registry().failures
            ],
        )  # fmt: skip
        where.mkdir(parents=True, exist_ok=True)
        write_text(where / "resolved.toml", resolved.toml)
        write_manifest(where, manifest)
    write_machine(where, experiment)
    pending = pending_batches(manifest["batches"], records, retry_errors=retry_errors)
    return Run(where, manifest, experiment, tuple(pending), parts)


def reopen(folder: Path, *, overrides: Sequence[str] = (), retry_errors: bool = False) -> Run:
    """Open a run by its folder, to go on with it here."""
    resolved = resolve_run(run_document(folder), overrides=overrides)
    return open_run(resolved, folder=folder, retry_errors=retry_errors)


def execute(
    run: Run,
    *,
    retry_errors: bool = False,
    max_errors: float | None = None,
    reverse: bool = False,
) -> Outcome:
    """Make the missing records with the run's executor, derive the summary, say how it went."""
    experiment = run.experiment
    if max_errors is not None:
        runtime = msgspec.structs.replace(experiment.runtime, max_errors=max_errors)
        experiment = replace(experiment, runtime=runtime)
    if reverse and run.parts is None and experiment.executor.name != "inline":
        raise UsageError("--reverse is for the inline executor; workers have an order of their own")
    hooks = registry()
    manifest = update_manifest(run.folder, status="running", ended=None)
    for observer in hooks.observers("vcr_run_started"):
        observer(run=copy.deepcopy(manifest))
    messages: list[str] = []
    interrupted = False
    if run.pending:
        try:
            for message, stopped in _shards(run, experiment, retry_errors, reverse):
                messages += [message] if message else []
                interrupted |= stopped
        except BaseException as error:
            finish_manifest(run.folder, "failed" if isinstance(error, Exception) else "interrupted")
            raise
    write_index(run.folder, planned_videos(manifest))
    records = read_records(run.folder)
    left = pending_batches(manifest["batches"], records)
    failed = sum(r["status"] == "error" for r in records)
    budget = experiment.runtime.max_errors
    allowed = budget if budget >= 1 else budget * run.total
    over = failed > allowed
    flags = run_flags(records, errors_over_budget=over)
    status: RunStatus = "interrupted" if interrupted else "failed" if left else "done"
    manifest = finish_manifest(run.folder, status, flags=flags)
    summary = write_summary(run.folder)
    for observer in hooks.observers("vcr_run_finished"):
        observer(run=copy.deepcopy(manifest), summary=copy.deepcopy(summary))
    if interrupted:
        return Outcome(status, 130, summary, f"interrupted; go on with: vcr run {run.folder}")
    if left:
        why = "; ".join(messages) or f"{len(left)} batches have no records"
        return Outcome(status, 1, summary, why)
    if over:
        return Outcome(
            status, 1, summary,
            f"{failed} of {run.total} videos failed, more than --max-errors allows ({budget:g}); "
            f"after mending them: vcr run {run.folder} --retry-errors",
        )  # fmt: skip
    return Outcome(status, 0, summary)


def _shards(
    run: Run,
    experiment: Experiment,
    retry_errors: bool,
    reverse: bool,
) -> Iterator[tuple[str, bool]]:
    """Yield ``(message, interrupted)`` of each share."""
    if run.parts is not None or experiment.executor.name == "inline":
        outcome = run_shard(
            plan_shards(run, experiment, retry_errors, workers=1)[0],
            experiment,
            parts=run.parts,
            reverse=reverse,
        )
        yield outcome.stopped, outcome.interrupted
        return
    executor = _executor(experiment)
    for status in executor.run(plan_shards(run, experiment, retry_errors)):
        yield ("" if status.ok else status.message), status.message == "interrupted"


def _as_begun(experiment: Experiment, manifest: Mapping[str, Any]) -> Experiment:
    """Return the experiment with the options that the run began with."""
    begun = dict.fromkeys(runtime_options(experiment), False)
    begun |= manifest.get("runtime_options") or {}
    asked = runtime_options(experiment)
    for name, value in asked.items():
        if begun[name] != value:
            logger.warning(
                "runtime.%s is %s for this run, as when it began", name, str(begun[name]).lower()
            )
    kept = {name: begun[name] for name in asked}
    return replace(experiment, runtime=msgspec.structs.replace(experiment.runtime, **kept))


def _batch_videos(
    experiment: Experiment, dataset: VideoDataset, videos: Sequence[str], parts: Parts | None
) -> int:
    """Return the size of the planned batches, measuring what fits where nobody says it."""
    asked = experiment.runtime.batch_videos
    if asked != "auto":
        return asked
    # Before the measurement starts CUDA, which could not be made deterministic afterwards.
    set_determinism(experiment.runtime.deterministic)
    device = choose_device(experiment.runtime.device)
    own = parts.model if parts is not None else None
    model = own if own is not None else build(experiment.model, folders_of(experiment.paths))
    # Compiled it would take as much, and the workers compile it once more.
    runtime = msgspec.structs.replace(experiment.runtime, compile=False)
    guarded = guarded_model(model, replace(experiment, runtime=runtime), device)
    return fitted_batch(experiment, guarded, dataset, videos, device)


def planned_threads(experiment: Experiment) -> int:
    """Return the CPU threads of each worker, which a run keeps for good.

    Sums over threads depend on their number, so all shares of a run use the same one, whoever
    runs them: ``runtime.threads``, else the cores' share of one of the planned workers.
    """
    if experiment.runtime.threads:
        return experiment.runtime.threads
    if experiment.executor.name == "inline":
        import torch

        return torch.get_num_threads()
    workers = experiment.executor.workers or _gpus(experiment) or _cores()
    return max(1, _cores() // workers)


def _gpus(experiment: Experiment) -> int:
    if experiment.runtime.device != "auto":
        return 0
    import torch

    return torch.cuda.device_count()


def _cores() -> int:
    import os

    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def plan_shards(
    run: Run, experiment: Experiment, retry_errors: bool, workers: int | None = None
) -> list[ShardTask]:
    """Return the shares of a run: one a GPU, or CPU workers with their share of the threads."""
    runtime = experiment.runtime
    gpus = _gpus(experiment)
    asked = workers or experiment.executor.workers or gpus or _cores()
    count = max(1, min(asked, len(run.pending)))
    threads = int(run.manifest.get("threads") or 0)
    return [
        ShardTask(
            folder=run.folder,
            index=index,
            count=count,
            device=f"cuda:{index % gpus}" if gpus and count > 1 else runtime.device,
            threads=threads,
            retry_errors=retry_errors,
        )
        for index in range(count)
    ]


def _executor(experiment: Experiment) -> Executor:
    from vcr_core.config.experiment import Chosen

    entry, _ = registry().find("executor", experiment.executor.name)
    params = msgspec.to_builtins(experiment.executor)
    params.pop("name")
    executor: Executor = build(
        Chosen(
            spec=entry.spec,
            distribution=entry.distribution,
            version=entry.version,
            params=params if entry.spec.params else {},
        )
    )
    return executor


def _content_hashes(dataset: VideoDataset, videos: Sequence[tuple[str, int]]) -> list[str | None]:
    if len(videos) > HASHED_AT_START:
        return [None] * len(videos)
    return [dataset.item(video).source.sha256() for video, _ in videos]


def _other_experiment(folder: Path, manifest: dict[str, Any], videos: Sequence[str]) -> str:
    planned = planned_videos(manifest)
    gone, new = sorted({*planned} - {*videos}), sorted({*videos} - {*planned})
    text = f"{folder} belongs to another experiment"
    if gone or new:
        named = [
            f"{len(v)} {what} (first {v[0]!r})" for v, what in ((gone, "gone"), (new, "new")) if v
        ]
        text = f"{folder}: the dataset has other videos than when it was planned: " + ", ".join(
            named
        )
    return f"{text}; use another results folder"


def _refuse_changed_videos(folder: Path, dataset: VideoDataset) -> None:
    for record in read_records(folder):
        then = (record.get("input") or {}).get("sha256")
        if then and dataset.item(record["video"]).source.sha256() != then:
            raise StoreError(
                f"{folder}: video {record['video']!r} is not the file that was evaluated (its "
                "content changed); put it back, or use another results folder"
            )


def _refuse_changed_artifact(
    folder: Path, manifest: dict[str, Any], artifact: Artifact | None
) -> None:
    """Refuse to mix results of two artifacts in one run."""
    then = [c["artifact"]["sha256"] for c in manifest["components"] if "artifact" in c]
    if artifact is not None and then and then != [artifact.sha256]:
        raise StoreError(
            f"{folder}: the attack's artifact has been made anew and is not the one that the "
            f"run began with ({then[0][:12]}…, now {artifact.sha256[:12]}…); use another results "
            "folder"
        )


def _components(experiment: Experiment) -> list[tuple[str, Chosen]]:
    chosen = [("dataset", experiment.dataset), ("model", experiment.model)]
    if experiment.attack is not None:
        chosen.append(("attack", experiment.attack))
    chosen += [("defense", defense) for defense in experiment.defenses]
    chosen += [("metric", metric) for metric in experiment.metrics]
    return chosen


def _described(
    role: str, chosen: Chosen, artifact: Artifact | None, folders: Sequence[Path]
) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "role": role,
        "kind": chosen.spec.kind,
        "ref": chosen.qualified,
        "distribution": chosen.distribution,
        "version": chosen.version,
        "target": chosen.spec.target,
        "params": chosen.params,
    }
    if isinstance(chosen.spec, AttackSpec):
        facts["access"] = chosen.spec.access
        facts |= nature(chosen.spec, chosen.params)
        if artifact is not None:
            facts["artifact"] = {
                "sha256": artifact.sha256,
                "key": artifact.manifest["key"],
                "videos": len(artifact.manifest["made_for"]["training"]),
                "overlap": len(artifact.overlap),
                "cost": artifact.manifest.get("cost"),
            }
    if isinstance(chosen.spec, ModelSpec):
        weights = weights_of(chosen, folders)
        facts["weights"] = weights.sha256 if weights else None
    return facts


def _label_names(
    experiment: Experiment, dataset: VideoDataset, parts: Parts | None
) -> Sequence[str]:
    """Return class names in the model's order, which is what records use."""
    spec = experiment.model.spec
    if parts and parts.model is not None:
        return parts.model.labels.names
    if isinstance(spec, ModelSpec) and spec.label_space == dataset.labels.id:
        return dataset.labels.names
    model = build(experiment.model, folders_of(experiment.paths))
    names: Sequence[str] = model.labels.names
    return names


def _tables(resolved: Resolved) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(resolved.toml)
