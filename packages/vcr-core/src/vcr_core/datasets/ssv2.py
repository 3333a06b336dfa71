"""Something-Something v2 with its official JSON label files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core.datasets.labels import label_index
from vcr_core.datasets.listing import (
    Entry,
    ListedDataset,
    checked_root,
    first_existing,
    manifest_entries,
)
from vcr_core.errors import ConfigError
from vcr_core.protocols import LabelSpace

if TYPE_CHECKING:
    from vcr_core.datasets.params import Ssv2Params

_PREFIX = "something-something-v2-"
_VIDEO_FOLDERS = ("20bn-something-something-v2", "videos")


class Ssv2Dataset(ListedDataset):
    """Files ``<id>.webm``; the class of a video is its template without brackets.

    Classes are in the order of the indices in the labels file; ids are the numbers of the videos.

    Args:
        params: root, split, annotations and manifest.

    Raises:
        ConfigError: for JSON files that are missing or have another form, and unknown templates.
    """

    def __init__(self, params: Ssv2Params) -> None:
        root = checked_root(params, "ssv2")
        labels_file = _json_file(root, params, "labels")
        names = _class_names(labels_file)
        labels = LabelSpace("ssv2", names)
        if params.manifest is not None:
            entries, where = manifest_entries(params.manifest, root), params.manifest
        else:
            file = _json_file(root, params, params.split)
            entries, where = _entries(root, file), str(file.absolute())
        super().__init__(labels, entries, params, where)


def _json_file(root: Path, params: Ssv2Params, what: str) -> Path:
    places = (root, root / "annotations", root / "labels")
    if params.annotations is not None:
        places = (Path(params.annotations),) * 3
    names = (f"{_PREFIX}{what}.json", f"{what}.json")
    found = first_existing(place / name for place in places for name in names)
    if found is None:
        folders = ", ".join(dict.fromkeys(str(place.absolute()) for place in places))
        raise ConfigError(
            f"dataset 'ssv2': no {' or '.join(names)} in {folders}; set dataset.annotations"
        )
    return found


def _load(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file.absolute()}: {error}") from error


def _class_names(file: Path) -> tuple[str, ...]:
    data = _load(file)
    try:
        by_index = {int(index): str(name) for name, index in data.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"{file.absolute()}: expected {{template: index}} ({error})") from error
    if sorted(by_index) != list(range(len(data))):
        raise ConfigError(f"{file.absolute()}: indices are not 0..{len(data) - 1}, each once")
    names = tuple(_template(by_index[index]) for index in sorted(by_index))
    label_index(names, str(file.absolute()))
    return names


def _entries(root: Path, file: Path) -> list[Entry]:
    base = first_existing(root / name for name in _VIDEO_FOLDERS) or root
    data = _load(file)
    if not isinstance(data, list):
        raise ConfigError(f"{file.absolute()}: expected a list of videos")
    entries: list[Entry] = []
    problems: list[str] = []
    for position, row in enumerate(data):
        if not isinstance(row, dict) or not row.get("id") or not row.get("template"):
            problems.append(f"{file.absolute()}: entry {position} has no id or no template")
            continue
        video = str(row["id"])
        entries.append(Entry(video, base / f"{video}.webm", _template(str(row["template"]))))
    if problems:
        raise ConfigError(problems)
    return entries


def _template(text: str) -> str:
    return text.replace("[", "").replace("]", "")
