"""The videos of a run as a subset manifest that other runs can name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vcr_core.config.resolve import resolve_run
from vcr_core.datasets.manifest import Manifest, make_manifest
from vcr_core.engine.machine import run_document
from vcr_core.engine.setup import build_dataset
from vcr_core.manifest import planned_videos, read_manifest

if TYPE_CHECKING:
    from vcr_core.protocols import LabelSpace, VideoDataset, VideoItem


def manifest_of_run(folder: Path) -> Manifest:
    """Return the planned videos of a run, in order, with paths, labels and hashes.

    Raises:
        UsageError: if a video has no file, or cannot be read.
    """
    experiment = resolve_run(run_document(folder)).experiment
    dataset = build_dataset(experiment)
    chosen = _Chosen(dataset, planned_videos(read_manifest(folder)))
    root = experiment.dataset.params.get("root") or experiment.paths.datasets.get(
        experiment.dataset.spec.name, "."
    )
    manifest = make_manifest(
        chosen,
        root=Path(root),
        name=experiment.dataset.ref,
        rule="list",
        seed=experiment.seed,
    )
    return replace(manifest, facts={**manifest.facts, "rule": experiment.dataset_keys.rule})


class _Chosen:
    """A dataset of which only some videos are seen."""

    def __init__(self, dataset: VideoDataset, ids: Sequence[str]) -> None:
        self._dataset = dataset
        self._ids = ids

    @property
    def labels(self) -> LabelSpace:
        return self._dataset.labels

    def ids(self) -> Sequence[str]:
        return self._ids

    def item(self, video_id: str) -> VideoItem:
        return self._dataset.item(video_id)
