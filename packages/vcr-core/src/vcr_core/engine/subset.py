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
    keys = experiment.dataset_keys
    labelled = {i: dataset.item(i).label for i in dataset.ids()}
    if keys.subset is not None:
        listed = [row.id for row in read_manifest(Path(keys.subset)).rows]
        unknown = [i for i in listed if i not in labelled]
        if unknown:
            raise ConfigError(
                f"dataset.subset: {keys.subset} names {len(unknown)} videos that dataset "
                f"{experiment.dataset.ref!r} does not have, first {unknown[0]!r}"
            )
        labelled = {i: labelled[i] for i in listed}
    ordered = order_ids(labelled, labelled, keys.rule, experiment.seed)
    chosen = ordered if keys.limit is None else ordered[: keys.limit]
    if not chosen:
        raise ConfigError(
            f"dataset {experiment.dataset.ref!r} holds no video here; look at its root and split "
            f"({experiment.dataset.params})"
        )
    return [(i, labelled[i]) for i in chosen]


def fingerprint(videos: Sequence[tuple[str, int]], hashes: Sequence[str | None]) -> str:
    """Return a hash of ids, labels and content hashes, whatever the order."""
    digest = hashlib.blake2b(digest_size=16, person=b"vcr-dataset-v1")
    for (video, label), content in sorted(zip(videos, (h or "" for h in hashes), strict=True)):
        digest.update(f"{video}\0{label}\0{content}\n".encode())
    return digest.hexdigest()
