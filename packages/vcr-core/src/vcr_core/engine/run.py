"""A run: its folder, its plan, and the making of the records that are missing."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
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
from vcr_core.engine.fitting import fitted_batch
from vcr_core.engine.machine import run_document, write_machine
from vcr_core.engine.models import guarded_model, runtime_options
from vcr_core.engine.selection import HASHED_AT_START, Selections, select
from vcr_core.engine.setup import Parts, choose_device
from vcr_core.engine.shard import set_determinism
from vcr_core.engine.workers import planned_threads
from vcr_core.environment import command_line, environment
from vcr_core.errors import StoreError
from vcr_core.manifest import (
    new_manifest,
    planned_videos,
    read_manifest,
    write_manifest,
)
from vcr_core.plan import pending_batches, plan_batches, retry_limit
from vcr_core.plugins import registry
from vcr_core.records import read_records
from vcr_core.specs import AttackSpec, ModelSpec
from vcr_core.storage import writing
from vcr_core.weights.places import folders_of

if TYPE_CHECKING:
    from vcr_core.artifacts import Artifact
    from vcr_core.config.experiment import Chosen, Experiment
    from vcr_core.protocols import VideoDataset

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Run:
    """An opened run.

    Attributes:
        folder: where it lives.
        manifest: ``run.json`` as it was when opened.
        experiment: what it evaluates.
        pending: numbers of the batches that are missing.
        retry_below: errors of attempts below this number are done again.
        parts: in-memory components, for runs from Python.
    """

    folder: Path
    manifest: dict[str, Any]
    experiment: Experiment
    pending: tuple[int, ...]
    retry_below: int = 0
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


def open_run(
    resolved: Resolved,
    *,
    parts: Parts | None = None,
    results: Path | None = None,
    folder: Path | None = None,
    retry_errors: bool = False,
    selections: Selections | None = None,
) -> Run:
    """Create the folder of an experiment, or find the one it already has.

    Args:
        resolved: the experiment.
        parts: in-memory components.
        results: folder of all runs; ``paths.results`` by default.
        folder: an existing run folder to go on with, wherever it lies.
        retry_errors: count batches with errors as missing.
        selections: videos that have been looked up for other runs.

    Raises:
        StoreError: if the folder belongs to another experiment, or its videos changed.
    """
    experiment = resolved.experiment
    if selections is not None and parts is None:
        selection = selections.of(experiment)
    else:
        selection = select(experiment, parts.dataset if parts else None)
    dataset, videos = selection.dataset, selection.videos
    name, full_hash = run_id(resolved.identity, videos)
    where = folder or (results or Path(experiment.paths.results)) / name
    records = read_records(where) if (where / "run.json").is_file() else []
    retry_below = retry_limit(records) if retry_errors else 0
    if (where / "run.json").is_file():
        manifest = read_manifest(where)
        experiment = _as_begun(experiment, manifest)
        if manifest["experiment_hash"] != full_hash:
            raise StoreError(_other_experiment(where, manifest, selection.ids))
        if manifest["dataset"]["fingerprint"] != selection.fingerprint:
            _refuse_changed_videos(where, dataset)
            # Videos without a result yet may have been mended since.
            manifest["dataset"]["fingerprint"] = selection.fingerprint
            write_manifest(where, manifest)
        if pending_batches(manifest["batches"], records, retry_below=retry_below):
            artifact = required_artifact(experiment, dataset, parts)
            _refuse_changed_artifact(where, manifest, artifact)
    else:
        artifact = required_artifact(experiment, dataset, parts)
        batch_videos = _batch_videos(experiment, dataset, selection.ids, parts)
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
                "fingerprint": selection.fingerprint,
                "content_hashed": len(videos) <= HASHED_AT_START,
                "label_space": dataset.labels.id,
                "labels": list(_label_names(experiment, dataset, parts)),
                "n": len(videos),
            },
            batches=plan_batches(selection.ids, batch_videos),
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
        with writing(where):
            where.mkdir(parents=True, exist_ok=True)
        write_text(where / "resolved.toml", resolved.toml)
        write_manifest(where, manifest)
    write_machine(where, experiment)
    pending = pending_batches(manifest["batches"], records, retry_below=retry_below)
    return Run(where, manifest, experiment, tuple(pending), retry_below, parts)


def reopen(folder: Path, *, overrides: Sequence[str] = (), retry_errors: bool = False) -> Run:
    """Open a run by its folder, to go on with it here."""
    resolved = resolve_run(run_document(folder), overrides=overrides)
    return open_run(resolved, folder=folder, retry_errors=retry_errors)


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
    # Attacks are shared between runs of equal cuts, so what the attacked model takes counts.
    attacked = experiment.attack_run
    if parts is not None and experiment.source is not None:
        parts = parts.of_source()
    own = parts.model if parts is not None else None
    model = own if own is not None else build(attacked.model, folders_of(experiment.paths))
    # Compiled it would take as much, and the workers compile it once more.
    runtime = msgspec.structs.replace(experiment.runtime, compile=False)
    guarded = guarded_model(model, replace(attacked, runtime=runtime), device)
    return fitted_batch(attacked, guarded, dataset, videos, device)


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
    if experiment.source is not None:
        chosen.append(("source", experiment.source))
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
