"""Kinetics-400 in its usual layouts, matched by file name."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vcr_core.datasets.labels import kinetics400_names, label_index, normalise_label
from vcr_core.datasets.listing import (
    Entry,
    ListedDataset,
    checked_root,
    find_videos,
    first_existing,
    manifest_entries,
)
from vcr_core.datasets.tables import read_table
from vcr_core.errors import ConfigError
from vcr_core.protocols import LabelSpace

if TYPE_CHECKING:
    from vcr_core.datasets.params import Kinetics400Params

_log = logging.getLogger(__name__)

# Ids may hold "_" and "-" themselves (one in seven does), so they are taken by their length.
_STEM: Final = re.compile(r"([A-Za-z0-9_-]{11})(?:_(\d{6})_(\d{6}))?")
_SPLIT_WORDS: Final = {
    "train": ("train", "training"),
    "val": ("val", "validate", "validation"),
    "test": ("test", "testing"),
}


class Kinetics400Dataset(ListedDataset):
    """Files ``<youtube_id>_<start>_<end>.<ext>`` at any depth below the root.

    Ids are file names without suffix, so they do not depend on the layout. Classes come from an
    annotation file (the official CSV; or lines of a path and a class index, which then decide what
    the videos are), or from the names of the folders.

    Args:
        params: root, split, annotations and manifest.

    Raises:
        ConfigError: for class names that are not Kinetics classes, ids that occur twice, and
            annotation files that cannot be read.
    """

    def __init__(self, params: Kinetics400Params) -> None:
        root = checked_root(params, "kinetics400")
        labels = LabelSpace("kinetics400", kinetics400_names())
        if params.manifest is not None:
            entries, where = manifest_entries(params.manifest, root), params.manifest
        else:
            entries, where = _find(root, params, labels)
        super().__init__(labels, entries, params, where)


def _find(root: Path, params: Kinetics400Params, labels: LabelSpace) -> tuple[list[Entry], str]:
    usual = (root / f"{params.split}.csv", root / "annotations" / f"{params.split}.csv")
    given = params.annotations
    annotations = Path(given) if given is not None else first_existing(usual)
    if annotations is None:
        words = _SPLIT_WORDS[params.split]
        base = first_existing(root / word for word in words) or root
        return _by_folder(base, labels), str(base.absolute())
    if annotations.suffix.lower() == ".csv":
        return _by_table(root, annotations, params.split), str(annotations.absolute())
    return _by_lines(root, annotations, labels), str(annotations.absolute())


def _by_folder(base: Path, labels: LabelSpace) -> list[Entry]:
    known = label_index(labels.names, labels.id)
    entries: list[Entry] = []
    for path in _named_files(base):
        parents = path.relative_to(base).parts[:-1]
        names = [part for part in reversed(parents) if normalise_label(part) in known]
        # A parent that is no class is reported by its own name, with all others of its kind.
        name = names[0] if names else (parents[-1] if parents else "")
        if not name:
            raise ConfigError(
                f"{path.absolute()}: not in a folder of a class, and there is no annotation file "
                "(set dataset.annotations)"
            )
        entries.append(Entry(path.stem, path, name))
    return entries


@dataclass(frozen=True, slots=True)
class _Annotations:
    by_time: dict[tuple[str, int, int], str]
    by_id: dict[str, str | None]

    def class_of(self, path: Path) -> str | None:
        match = _STEM.fullmatch(path.stem)
        if match is None:
            return None
        video, start, end = match.groups()
        if start is None:
            return self.by_id.get(video)
        return self.by_time.get((video, int(start), int(end)))


def _by_table(root: Path, file: Path, split: str) -> list[Entry]:
    annotations = _read_annotations(file, split)
    entries: list[Entry] = []
    unlisted: list[Path] = []
    for path in _named_files(root):
        name = annotations.class_of(path)
        if name is None:
            unlisted.append(path)
        else:
            entries.append(Entry(path.stem, path, name))
    if unlisted:
        _log.warning(
            "%s: %d files below %s are not in it for split %s and are left out, first %s",
            file, len(unlisted), root, split, unlisted[0],
        )  # fmt: skip
    missing = len(annotations.by_time) - len(entries)
    if missing > 0:
        _log.info("%s: %d of its videos have no file below %s", file, missing, root)
    return entries


def _read_annotations(file: Path, split: str) -> _Annotations:
    table = read_table(file, ("label", "youtube_id", "time_start", "time_end"))
    words = _SPLIT_WORDS[split]
    by_time: dict[tuple[str, int, int], str] = {}
    by_id: dict[str, str | None] = {}
    problems: list[str] = []
    for row in table.rows:
        values = row.values
        if values.get("split", split).lower() not in words:
            continue
        video, label = values["youtube_id"], values["label"]
        try:
            times = int(float(values["time_start"])), int(float(values["time_end"]))
        except ValueError as error:
            problems.append(f"{table.path}:{row.line}: {error}")
            continue
        by_time[video, *times] = label
        # A file without times in its name is known only if its id occurs once.
        by_id[video] = None if video in by_id else label
    if problems:
        raise ConfigError(problems)
    return _Annotations(by_time, by_id)


def _by_lines(root: Path, file: Path, labels: LabelSpace) -> list[Entry]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file.absolute()}: {error}") from error
    entries: list[Entry] = []
    problems: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        # The index is what follows the last blank; the path may hold blanks itself.
        path, _, index = line.strip().rpartition(" ")
        if not path or not index.isdecimal() or int(index) >= len(labels):
            text = f"expected a path and a class index below {len(labels)}, found {line!r}"
            problems.append(f"{file.absolute()}:{number}: {text}")
            continue
        target = root / path.strip()
        entries.append(Entry(target.stem, target, labels.names[int(index)]))
    if problems:
        raise ConfigError(problems)
    return entries


def _named_files(base: Path) -> list[Path]:
    found: list[Path] = []
    others: list[Path] = []
    for path in find_videos(base):
        (found if _STEM.fullmatch(path.stem) else others).append(path)
    if others:
        _log.warning(
            "%s: %d videos are left out because their names are not <id>_<start>_<end>, first %s",
            base, len(others), others[0],
        )  # fmt: skip
    return found
