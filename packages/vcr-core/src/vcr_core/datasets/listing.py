"""What all datasets of files share: a fixed list of ids, paths and classes; nothing is decoded."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vcr_core.datasets.labels import match_labels
from vcr_core.datasets.manifest import read_manifest
from vcr_core.errors import ConfigError
from vcr_core.protocols import LabelSpace, VideoItem
from vcr_core.video.source import FileSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from vcr_core.datasets.params import FileParams

VIDEO_SUFFIXES: Final = frozenset(
    {
        *(".3g2", ".3gp", ".apng", ".asf", ".avi", ".divx", ".dv", ".flv", ".gif", ".h264"),
        *(".h265", ".hevc", ".ivf", ".m2ts", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg"),
        *(".mts", ".mxf", ".npy", ".npz", ".nut", ".ogg", ".ogv", ".qt", ".rm", ".rmvb", ".ts"),
        *(".vob", ".webm", ".webp", ".wmv", ".xvid", ".y4m"),
    }
)
"""Names that folders are searched for; lists may name any file."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One video of a dataset.

    Attributes:
        id: unique in the dataset.
        path: file or folder of frames; need not exist.
        class_name: the class, as its source spells it.
        sha256: expected content hash, if known.
        n_frames: expected number of frames, if known.
    """

    id: str
    path: Path
    class_name: str
    sha256: str | None = None
    n_frames: int | None = None


class ListedDataset:
    """A dataset whose videos are files known beforehand.

    Args:
        labels: the classes.
        entries: the videos; ids must differ.
        params: ``on_error`` for damaged files.
        where: what messages call the list.

    Raises:
        ConfigError: for class names outside the label space, or an id that occurs twice.
    """

    def __init__(
        self, labels: LabelSpace, entries: Iterable[Entry], params: FileParams, where: str
    ) -> None:
        self.labels = labels
        self._on_error = params.on_error
        self._entries: dict[str, Entry] = {}
        for entry in entries:
            if entry.id in self._entries:
                other = self._entries[entry.id].path
                raise ConfigError(
                    f"{where}: two videos have the id {entry.id!r}: {other} and {entry.path}"
                )
            self._entries[entry.id] = entry
        classes = (entry.class_name for entry in self._entries.values())
        self._labels = match_labels(classes, labels.names, where)

    def ids(self) -> Sequence[str]:
        """Return every id, sorted."""
        return sorted(self._entries)

    def item(self, video_id: str) -> VideoItem:
        """Return one video; its file is not looked at.

        Raises:
            KeyError: for an id that is not listed.
        """
        entry = self._entries[video_id]
        source = FileSource(
            path=entry.path,
            on_error=self._on_error,
            expected_frames=entry.n_frames,
            expected_sha256=entry.sha256,
        )
        return VideoItem(video_id, self._labels[entry.class_name], source)


def checked_root(params: FileParams, name: str) -> Path:
    """Return the root folder of a dataset.

    Raises:
        ConfigError: if it is not given, or is no folder.
    """
    if not params.root:
        raise ConfigError(
            f"dataset {name!r} needs its folder: set dataset.root, or paths.datasets.{name} "
            "in a local configuration file"
        )
    root = Path(params.root)
    if not root.is_dir():
        raise ConfigError(f"dataset {name!r}: root {root.absolute()} is no folder")
    return root


def manifest_entries(manifest: str, root: Path) -> list[Entry]:
    """Return the videos that a manifest lists, with paths below ``root``.

    Raises:
        ConfigError: as :func:`vcr_core.datasets.manifest.read_manifest`.
    """
    return [
        Entry(row.id, root / row.path, row.label, row.sha256 or None, row.n_frames)
        for row in read_manifest(Path(manifest)).rows
    ]


def find_videos(root: Path) -> Iterator[Path]:
    """Yield video files, and folders that hold images, at any depth; hidden ones are left out.

    The order is that of the names, whatever the file system gives. A folder with images directly
    inside is one video and is not searched further.
    """
    from vcr_core.video.opening import IMAGE_SUFFIXES

    stills = IMAGE_SUFFIXES - VIDEO_SUFFIXES
    for folder, folders, files in os.walk(root, followlinks=True):
        here = Path(folder)
        visible = sorted(name for name in files if not name.startswith("."))
        if here != root and any(Path(name).suffix.lower() in stills for name in visible):
            folders.clear()
            yield here
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in visible:
            if Path(name).suffix.lower() in VIDEO_SUFFIXES:
                yield here / name


def first_existing(candidates: Iterable[Path]) -> Path | None:
    """Return the first path that exists."""
    return next((path for path in candidates if path.exists()), None)
