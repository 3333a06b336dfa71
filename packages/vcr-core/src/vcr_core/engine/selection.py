"""The videos of a run, looked up once for all runs of a sweep that evaluate the same ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from vcr_core.engine.setup import build_dataset
from vcr_core.engine.subset import fingerprint, select_videos

if TYPE_CHECKING:
    from vcr_core.config.experiment import Experiment
    from vcr_core.protocols import VideoDataset

HASHED_AT_START = 1000
"""Up to so many videos the fingerprint of a run covers their content, not only their ids."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The videos that an experiment evaluates.

    Attributes:
        dataset: where they are from.
        videos: ``(id, label)`` in the order of the subset.
        fingerprint: hash of ids and labels, and of contents where they are not too many.
    """

    dataset: VideoDataset
    videos: Sequence[tuple[str, int]]
    fingerprint: str

    @property
    def ids(self) -> list[str]:
        """Their ids, in order."""
        return [video for video, _ in self.videos]


def select(experiment: Experiment, dataset: VideoDataset | None = None) -> Selection:
    """Look up the videos of an experiment.

    Args:
        experiment: the experiment.
        dataset: an object that takes the place of the dataset that it names.

    Raises:
        ConfigError: if there are none, or some that are asked for are not there.
    """
    dataset = build_dataset(experiment) if dataset is None else dataset
    videos = select_videos(experiment, dataset)
    hashes: list[str | None] = [None] * len(videos)
    if len(videos) <= HASHED_AT_START:
        hashes = [dataset.item(video).source.sha256() for video, _ in videos]
    return Selection(dataset, videos, fingerprint(videos, hashes))


class Selections:
    """Remembers selections while a sweep is opened: hashing videos takes time."""

    def __init__(self) -> None:
        self._known: dict[str, Selection] = {}

    def of(self, experiment: Experiment) -> Selection:
        """Return the selection of an experiment; see :func:`select`."""
        chosen = experiment.dataset
        keys = msgspec.to_builtins(experiment.dataset_keys)
        facts = [chosen.qualified, chosen.params, keys, experiment.seed, experiment.paths.datasets]
        key = json.dumps(facts, sort_keys=True, default=str)
        if key not in self._known:
            self._known[key] = select(experiment)
        return self._known[key]
