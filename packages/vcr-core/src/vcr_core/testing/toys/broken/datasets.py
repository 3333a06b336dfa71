"""Datasets with the faults of published loaders."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vcr_core.protocols import VideoItem
from vcr_core.testing.toys.arrays import ArraySource, clip_of
from vcr_core.testing.toys.shapes import ShapesDataset

if TYPE_CHECKING:
    from vcr_core.protocols import Sampler, VideoSource
    from vcr_core.video.info import Clip

_counter = itertools.count()


class Twice(ShapesDataset):
    """Lists a video twice."""

    def ids(self) -> Sequence[str]:
        """Return an id again."""
        ids = list(super().ids())
        return [*ids, ids[0]]


class Shuffled(ShapesDataset):
    """Lists its videos in another order each time, as a directory does."""

    def ids(self) -> Sequence[str]:
        """Return a rotated list."""
        ids = list(super().ids())
        start = next(_counter) % len(ids)
        return ids[start:] + ids[:start]


class OffByOne(ShapesDataset):
    """Counts classes from 1."""

    def item(self, video_id: str) -> VideoItem:
        """Return a label that is one too high."""
        item = super().item(video_id)
        return replace(item, label=item.label + 1)


class Changing(ShapesDataset):
    """Draws other frames whenever a video is read."""

    def item(self, video_id: str) -> VideoItem:
        """Return a source that changes."""
        return replace(super().item(video_id), source=_ChangingSource(video_id))


class Drawing(ShapesDataset):
    """Takes a number from numpy's global generator whenever a video is read."""

    def item(self, video_id: str) -> VideoItem:
        """Return a source that draws."""
        item = super().item(video_id)
        return replace(item, source=_DrawingSource(video_id, item.source))


class AnyId(ShapesDataset):
    """Answers for ids that it does not list."""

    def item(self, video_id: str) -> VideoItem:
        """Return something for every id."""
        frames = np.zeros((8, 32, 32, 3), dtype=np.uint8)
        return VideoItem(video_id, 0, ArraySource(video_id, frames))


class GoneFiles(ShapesDataset):
    """Lets the operating system's own error through."""

    def item(self, video_id: str) -> VideoItem:
        """Return a source that opens a file."""
        return replace(super().item(video_id), source=_FileSource(Path(video_id)))


@dataclass(frozen=True, slots=True)
class _DrawingSource:
    name: str
    source: VideoSource

    def read(self, sampler: Sampler) -> Clip:
        np.random.random()
        return self.source.read(sampler)

    def sha256(self) -> str | None:
        return self.source.sha256()


@dataclass(frozen=True, slots=True)
class _ChangingSource:
    name: str

    def read(self, sampler: Sampler) -> Clip:
        level = next(_counter) % 256
        return clip_of(self.name, np.full((12, 32, 32, 3), level, dtype=np.uint8), sampler)

    def sha256(self) -> str:
        return "0" * 64


@dataclass(frozen=True, slots=True)
class _FileSource:
    path: Path

    @property
    def name(self) -> str:
        return str(self.path)

    def read(self, sampler: Sampler) -> Clip:
        pixels = np.frombuffer(self.path.read_bytes(), dtype=np.uint8)
        return clip_of(self.name, pixels.reshape(-1, 32, 32, 3), sampler)

    def sha256(self) -> str:
        return "0" * 64
