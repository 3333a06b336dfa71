"""One folder per class with video files inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcr_core.datasets.labels import normalise_label, space_id
from vcr_core.datasets.listing import (
    Entry,
    ListedDataset,
    checked_root,
    find_videos,
    manifest_entries,
)
from vcr_core.errors import ConfigError
from vcr_core.protocols import LabelSpace

if TYPE_CHECKING:
    from vcr_core.datasets.params import FolderParams


class FolderDataset(ListedDataset):
    """``root/<class>/<file>``, deeper files and folders of frames included.

    Classes are the folder names in alphabetical order; ids are paths below the root with ``/``.

    Args:
        params: root, manifest and what to do with damaged files.

    Raises:
        ConfigError: if the root holds no folder, or two folders are the same class.
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
        if not names:
            raise ConfigError(f"{root.absolute()}: holds no folder; expected root/<class>/<file>")
        classes = tuple(sorted(names.values()))
        space = LabelSpace(space_id("folder", classes), classes)
        super().__init__(space, entries, params, str(root.absolute()))
