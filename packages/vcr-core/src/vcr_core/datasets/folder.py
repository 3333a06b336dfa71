"""One folder per class with video files inside."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from vcr_core.datasets.labels import UNLABELLED, normalise_label, space_id
from vcr_core.datasets.listing import (
    VIDEO_SUFFIXES,
    Entry,
    ListedDataset,
    checked_root,
    find_videos,
    manifest_entries,
)
from vcr_core.errors import ConfigError
from vcr_core.protocols import LabelSpace

if TYPE_CHECKING:
    from pathlib import Path

    from vcr_core.datasets.params import FolderParams

_log = logging.getLogger(__name__)


class FolderDataset(ListedDataset):
    """``root/<class>/<file>``, deeper files and folders of frames included.

    Classes are the folder names in alphabetical order; ids are paths below the root with ``/``.
    Where no folder holds a video, the videos that lie in the root itself are taken, files and
    folders of frames, and have no labels.

    Args:
        params: root, manifest and what to do with damaged files.

    Raises:
        ConfigError: if the root holds neither folders nor videos, or two folders are the same
            class.
    """

    def __init__(self, params: FolderParams) -> None:
        root = checked_root(params, "folder")
        folders = sorted(p for p in root.iterdir() if p.is_dir() and not p.name.startswith("."))
        names = {normalise_label(folder.name): folder.name for folder in folders}
        if len(names) < len(folders):
            kept = set(names.values())
            twin = next(folder.name for folder in folders if folder.name not in kept)
            raise ConfigError(f"{root.absolute()}: folder {twin!r} repeats another class's name")
        if params.manifest is not None:
            entries = manifest_entries(params.manifest, root)
            for entry in entries:
                names.setdefault(normalise_label(entry.class_name), entry.class_name)
        else:
            entries = [
                Entry(path.relative_to(root).as_posix(), path, folder.name)
                for folder in folders
                for path in find_videos(folder)
            ]
        where = str(root.absolute())
        if params.manifest is None and not entries:
            loose = [path for path in find_videos(root) if path.parent == root]
            if loose:
                unlabelled = [Entry(path.name, path, UNLABELLED.names[0]) for path in loose]
                super().__init__(UNLABELLED, unlabelled, params, where)
                return
        elif params.manifest is None:
            _tell_of_loose(root)
        if not names:
            raise ConfigError(
                f"{where}: holds neither folders nor videos; expected root/<class>/<file>, or "
                "videos without labels right in it"
            )
        classes = tuple(sorted(names.values()))
        space = LabelSpace(space_id("folder", classes), classes)
        super().__init__(space, entries, params, where)


def _tell_of_loose(root: Path) -> None:
    """Warn of video files beside the folders of classes, which are not taken."""
    loose = sorted(
        path.name
        for path in root.iterdir()
        if path.suffix.lower() in VIDEO_SUFFIXES
        and not path.name.startswith(".")
        and path.is_file()
    )
    if loose:
        _log.warning(
            "%s: %d videos lie in no folder of a class and are left out, first %s",
            root.absolute(), len(loose), loose[0],
        )  # fmt: skip
