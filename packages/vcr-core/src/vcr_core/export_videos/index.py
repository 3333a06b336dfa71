"""``videos.json``: which files of a folder belong to which video of which run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core.atomic import write_json
from vcr_core.errors import StoreError
from vcr_core.file_names import file_name

if TYPE_CHECKING:
    from vcr_core.summary import RunView

INDEX_FILE = "videos.json"
INDEX_SCHEMA = 1


@dataclass(slots=True)
class Index:
    """The index of one run's exported videos.

    Attributes:
        folder: where the files are.
        run: facts about the run, which tell it from every other one.
        videos: by id: the ``folder`` of the video, its ``files`` by version with ``file`` and
            ``sha256``, and its ``previews``.
    """

    folder: Path
    run: dict[str, Any]
    videos: dict[str, dict[str, Any]] = field(default_factory=dict)

    def place(self, video: str) -> str:
        """Return the folder's name of a video; its entry is taken out until it is put back.

        Raises:
            StoreError: if another video has that name already.
        """
        name = folder_name(video)
        before = self.videos.pop(video, None)
        if before is not None:
            self.save()
            # Exact files are replaced; other formats of a preview would stay beside the new ones.
            for preview in map(str, before.get("previews") or ()):
                if file_name(preview) == preview:
                    (self.folder / name / preview).unlink(missing_ok=True)
        for other, entry in self.videos.items():
            if entry.get("folder") == name:
                raise StoreError(
                    f"{video!r} and {other!r} would share the folder {name}; export them to "
                    "different folders"
                )
        return name

    def put(self, video: str, entry: Mapping[str, Any]) -> None:
        """Add a video whose files are all there."""
        self.videos[video] = dict(entry)
        self.save()

    def save(self) -> None:
        """Replace ``videos.json``."""
        videos = [{"video": video, **entry} for video, entry in self.videos.items()]
        data = {"schema": INDEX_SCHEMA, **self.run, "videos": videos}
        write_json(self.folder / INDEX_FILE, data)


def folder_name(video: str) -> str:
    """Return the name of a video's folder, which is never that of the index."""
    name = file_name(video)
    return file_name(f"{video}/") if name == INDEX_FILE else name


def open_index(run: RunView, out: Path) -> Index:
    """Return the index of a run below ``out``, an empty one where nothing was exported yet.

    Raises:
        StoreError: if the folder holds the export of another run, or its index is damaged.
    """
    folder = out / file_name(run.name)
    facts = {
        "run": run.name,
        "experiment_hash": run.manifest.get("experiment_hash"),
        "evaluation_version": run.manifest.get("evaluation_version"),
        "started": run.manifest.get("started"),
    }
    path = folder / INDEX_FILE
    if not path.is_file():
        return Index(folder, facts)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        schema = data["schema"]
        videos = {str(entry.pop("video")): entry for entry in data["videos"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{path}: cannot be read ({error}); export to another folder") from error
    if schema != INDEX_SCHEMA:
        raise StoreError(f"{path}: schema {schema!r} is not the one of this version of vcr-core")
    if any(data.get(key) != value for key, value in facts.items()):
        raise StoreError(
            f"{folder} holds videos of another run of that name; export to another folder"
        )
    return Index(folder, facts, videos)
