"""Which videos a run evaluates, and in which order."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from vcr_core.datasets.manifest import order_ids, read_manifest
from vcr_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vcr_core.config.experiment import Experiment
    from vcr_core.protocols import VideoDataset


def select_videos(experiment: Experiment, dataset: VideoDataset) -> list[tuple[str, int]]:
    """Return ``(id, label)`` of the subset in its order; ``limit`` takes a prefix.

    Labels are indices in the dataset's own label space.

    Raises:
        ConfigError: if nothing is left, or a manifest names videos the dataset does not have.
    """
    listed, _ = _in_order(experiment, dataset)
    limit = experiment.dataset_keys.limit
    chosen = listed if limit is None else listed[:limit]
    if not chosen:
        raise ConfigError(
            f"dataset {experiment.dataset.ref!r} holds no video here; look at its root and split "
            f"({experiment.dataset.params})"
        )
    return chosen


def training_videos(
    experiment: Experiment, dataset: VideoDataset
) -> tuple[list[tuple[str, int]], list[str]]:
    """Return ``(id, label)`` of the videos that an offline step may use, and which are evaluated.

    They are the next ones of the evaluated ones' order; after those of a subset manifest come the
    other videos of the dataset. With ``prepare.allow_overlap`` evaluated videos fill up what is
    missing of ``prepare.videos``.

    Raises:
        ConfigError: if there is none.
    """
    wanted = experiment.prepare.videos
    listed, others = _in_order(experiment, dataset)
    evaluated = select_videos(experiment, dataset)
    training = [*listed[len(evaluated) :], *others][:wanted]
    overlap: list[tuple[str, int]] = []
    if experiment.prepare.allow_overlap:
        overlap = evaluated[: wanted - len(training)]
    if not (training or overlap):
        raise ConfigError(
            f"the run evaluates all {len(evaluated)} videos of dataset "
            f"{experiment.dataset.ref!r}, which leaves none to prepare with; set dataset.limit "
            "below that, or prepare.allow_overlap = true (the results are then flagged 'leak')"
        )
    return [*training, *overlap], [video for video, _ in overlap]


def _in_order(
    experiment: Experiment, dataset: VideoDataset
) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Return the videos that the subset lists, and the dataset's others, each in their order."""
    keys, seed = experiment.dataset_keys, experiment.seed
    labelled = {i: dataset.item(i).label for i in dataset.ids()}
    others: list[str] = []
    if keys.subset is not None:
        listed = [row.id for row in read_manifest(Path(keys.subset)).rows]
        unknown = [i for i in listed if i not in labelled]
        if unknown:
            raise ConfigError(
                f"dataset.subset: {keys.subset} names {len(unknown)} videos that dataset "
                f"{experiment.dataset.ref!r} does not have, first {unknown[0]!r}"
            )
        named = {*listed}
        others = order_ids([i for i in labelled if i not in named], labelled, keys.rule, seed)
        ordered = order_ids(listed, labelled, keys.rule, seed)
    else:
        ordered = order_ids(labelled, labelled, keys.rule, seed)
    return [(i, labelled[i]) for i in ordered], [(i, labelled[i]) for i in others]


def fingerprint(videos: Sequence[tuple[str, int]], hashes: Sequence[str | None]) -> str:
    """Return a hash of ids, labels and content hashes, whatever the order."""
    digest = hashlib.blake2b(digest_size=16, person=b"vcr-dataset-v1")
    for (video, label), content in sorted(zip(videos, (h or "" for h in hashes), strict=True)):
        digest.update(f"{video}\0{label}\0{content}\n".encode())
    return digest.hexdigest()
