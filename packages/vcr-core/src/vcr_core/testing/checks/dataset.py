"""Checks of datasets."""

from __future__ import annotations

import dataclasses
import itertools
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from vcr_core.errors import VcrError
from vcr_core.protocols import VideoDataset, VideoItem
from vcr_core.seeding import subset_order
from vcr_core.testing.checks.ambient import under_state
from vcr_core.testing.contract import Subject, require
from vcr_core.video.sampling import SamplingPlan, whole_video

_LOOKED_AT = 4
"""Videos that are read; all are listed, a few are decoded."""


def ids_unique_stable(subject: Subject) -> None:
    """Ids are unique, use ``/``, and are the same, in the same order, for two instances."""
    ids = list(_build(subject).ids())
    require(ids, "the dataset lists no video")
    twice = sorted({i for i in ids if ids.count(i) > 1}) if len(set(ids)) < len(ids) else []
    require(not twice, f"id {twice[:1]} is listed twice")
    odd = [i for i in ids if not i or "\\" in i or "\n" in i]
    require(not odd, f"id {odd[:1]} is empty or holds a backslash or a line break")
    again = list(_build(subject).ids())
    require(ids == again, "two instances list other ids, or another order")


def labels_in_range(subject: Subject) -> None:
    """Every label is an index in the label space."""
    dataset = _build(subject)
    count = len(dataset.labels)
    require(count > 0, "the label space is empty")
    require(len(set(dataset.labels.names)) == count, "two classes of the label space have one name")
    for video_id in dataset.ids():
        item = dataset.item(video_id)
        require(item.id == video_id, f"item({video_id!r}) has the id {item.id!r}")
        require(
            isinstance(item.label, int) and 0 <= item.label < count,
            f"{video_id!r} has label {item.label!r}, there are {count} classes",
        )


def fingerprint_stable(subject: Subject) -> None:
    """Two instances give the same content hashes and frames, and leave global generators alone."""
    for one, other in zip(_items(subject), _items(subject), strict=True):
        require(
            one.source.sha256() == other.source.sha256(),
            f"two instances give other content hashes for {one.id!r}",
        )
        # While another thread reads, the global generators belong to the attack.
        first = under_state(7, partial(_frames, one), f"reading {one.id!r}")
        second, third = _frames(one), _frames(other)
        require(
            np.array_equal(first, second) and np.array_equal(first, third),
            f"{one.id!r} has other frames when it is read again",
        )
        require(
            first.dtype == np.uint8 and first.ndim == 4 and first.shape[-1] == 3,
            f"{one.id!r}: frames are {first.dtype} {list(first.shape)}, not uint8 [T, H, W, 3]",
        )


def missing_file_typed_error(subject: Subject) -> None:
    """An unknown id is a :class:`KeyError`; a file that has gone is a typed error with its path."""
    dataset = _build(subject)
    try:
        dataset.item("no-such-video/at-all")
    except KeyError:
        pass
    else:
        raise AssertionError("item() of an unknown id raised nothing; the contract is KeyError")
    source: Any = _items(subject)[0].source
    if "path" not in getattr(source, "__dataclass_fields__", {}):
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gone.mp4"
        moved = dataclasses.replace(source, path=type(source.path)(path))
        try:
            moved.read(_first_frame)
        except VcrError as error:
            require(str(path) in str(error), f"the error does not name the file: {error}")
        except OSError as error:
            raise AssertionError(f"{type(error).__name__} is not one of ours: {error}") from error
        else:
            raise AssertionError("a file that does not exist was read without an error")


def subset_prefix(subject: Subject) -> None:
    """A small subset is a prefix of a large one, whatever order the ids are listed in."""
    ids = list(_build(subject).ids())
    ordered = subset_order(ids, 42)
    again = [i for i, after in itertools.pairwise(ordered) if i == after]
    require(not again, f"a subset holds {again[:1]} twice")
    require(
        subset_order(list(reversed(ids)), 42) == ordered,
        "the subset depends on the order in which ids are listed",
    )
    without = [i for i in ordered if i != ordered[0]]
    require(
        subset_order(without, 42) == ordered[1:],
        "the subset of the others changes when one video is missing",
    )


def _build(subject: Subject) -> VideoDataset:
    return cast(VideoDataset, subject.build())


def _items(subject: Subject) -> list[VideoItem]:
    dataset = _build(subject)
    chosen: Sequence[str] = subset_order(dataset.ids(), 42)[:_LOOKED_AT]
    return [dataset.item(i) for i in chosen]


def _first_frame(_count: int) -> SamplingPlan:
    return SamplingPlan(((0,),), "center", 1)


def _frames(item: VideoItem) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.asarray(item.source.read(whole_video).frames)
