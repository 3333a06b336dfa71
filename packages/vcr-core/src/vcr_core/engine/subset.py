"""Which videos a run evaluates, and in which order."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from vcr_core.datasets.manifest import order_ids, read_manifest
from vcr_core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from vcr_core.config.experiment import Experiment
    from vcr_core.datasets.manifest import Rule
    from vcr_core.protocols import VideoDataset


def select_videos(experiment: Experiment, dataset: VideoDataset) -> list[tuple[str, int]]:
    """Return ``(id, label)`` of the subset in its order; ``limit`` takes a prefix.

    Labels are indices in the dataset's own label space. Of videos that were made from one
    recording all are taken or none: the prefix is as long as whole groups allow.

    Raises:
        ConfigError: if nothing is left, or a manifest names videos the dataset does not have.
    """
    listed, _ = _in_order(experiment, dataset)
    limit = experiment.dataset_keys.limit
    chosen = listed if limit is None else _prefix(listed, dataset, limit)
    if not chosen:
        raise ConfigError(
            f"dataset {experiment.dataset.ref!r} holds no video here; look at its root and split "
            f"({experiment.dataset.params})"
        )
    return chosen


def _prefix(
    listed: Sequence[tuple[str, int]], dataset: VideoDataset, limit: int
) -> list[tuple[str, int]]:
    """Return at most ``limit`` videos, whole groups only.

    Raises:
        ConfigError: if the first group alone is larger.
    """
    end = min(limit, len(listed))
    groups = [dataset.item(video).group for video, _ in listed[: end + 1]]
    if end < len(listed) and groups[end]:
        cut = end
        while end and groups[end - 1] == groups[cut]:
            end -= 1
        if not end:
            whole = sum(dataset.item(video).group == groups[0] for video, _ in listed)
            raise ConfigError(
                f"dataset.limit: found {limit}, and {whole} videos are made from each source "
                f"(first {groups[0]!r}), of which all are taken or none; allowed: {whole} or more"
            )
    return list(listed[:end])


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
    seen = {dataset.item(video).group for video, _ in evaluated} - {""}
    free = [*listed[len(evaluated) :], *others]
    # A subset manifest may list some of the videos that were made from one recording.
    training = [(i, y) for i, y in free if dataset.item(i).group not in seen][:wanted]
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
    items = [dataset.item(i) for i in dataset.ids()]
    labelled = {item.id: item.label for item in items}
    groups = {item.id: item.group or item.id for item in items}
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
        others = _ordered(
            [i for i in labelled if i not in named], labelled, groups, keys.rule, seed
        )
        ordered = _ordered(listed, labelled, groups, keys.rule, seed)
    else:
        ordered = _ordered(labelled, labelled, groups, keys.rule, seed)
    return [(i, labelled[i]) for i in ordered], [(i, labelled[i]) for i in others]


def _ordered(
    ids: Iterable[str],
    labels: Mapping[str, int],
    groups: Mapping[str, str],
    rule: Rule,
    seed: int,
) -> list[str]:
    """Return ids in the order of a rule, which orders groups; inside they stay as listed."""
    members: dict[str, list[str]] = {}
    for video in ids:
        members.setdefault(groups[video], []).append(video)
    firsts = {group: labels[videos[0]] for group, videos in members.items()}
    return [i for group in order_ids(members, firsts, rule, seed) for i in members[group]]


def fingerprint(videos: Sequence[tuple[str, int]], hashes: Sequence[str | None]) -> str:
    """Return a hash of ids, labels and content hashes, whatever the order."""
    digest = hashlib.blake2b(digest_size=16, person=b"vcr-dataset-v1")
    for (video, label), content in sorted(zip(videos, (h or "" for h in hashes), strict=True)):
        digest.update(f"{video}\0{label}\0{content}\n".encode())
    return digest.hexdigest()
