"""Video paths and labels from a CSV file."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from vcr_core.datasets.labels import normalise_label, read_names, space_id
from vcr_core.datasets.listing import Entry, ListedDataset, manifest_entries
from vcr_core.datasets.tables import Row, read_table
from vcr_core.errors import ConfigError
from vcr_core.protocols import LabelSpace

if TYPE_CHECKING:
    from vcr_core.datasets.params import CsvParams


class CsvDataset(ListedDataset):
    """A list with the columns ``path`` and ``label`` and, if wanted, ``id`` and ``split``.

    Paths resolve against ``root``, or against the list's own folder. Ids are the ``id`` column, or
    the path as it is written. Classes are those of the ``classes`` file in its order, or all that
    the list names, in alphabetical order, whatever the split.

    Args:
        params: list, root, classes and split.

    Raises:
        ConfigError: naming file and line of every row that cannot be used.
    """

    def __init__(self, params: CsvParams) -> None:
        file = Path(params.file)
        root = Path(params.root) if params.root else file.parent
        table = read_table(file, ("path", "label"))
        if params.split is not None and "split" not in table.columns:
            raise ConfigError(f"{table.path}: split {params.split!r} asked for, no column split")
        names = read_names(Path(params.classes)) if params.classes is not None else None
        if params.label_kind == "index" and names is None:
            raise ConfigError("dataset.label_kind = 'index' needs dataset.classes")
        problems: list[str] = []
        entries: list[Entry] = []
        seen: dict[str, int] = {}
        spelled: dict[str, str] = {}
        for row in table.rows:
            problem = _problem(row, names if params.label_kind == "index" else None)
            if problem:
                problems.append(f"{table.path}:{row.line}: {problem}")
                continue
            label = row.values["label"]
            if params.label_kind == "index" and names is not None:
                label = names[int(label)]
            spelled.setdefault(normalise_label(label), label)
            if params.split is not None and row.values["split"] != params.split:
                continue
            video = row.values.get("id") or PurePath(row.values["path"]).as_posix()
            if video in seen:
                text = f"id {video!r} is already in line {seen[video]}"
                problems.append(f"{table.path}:{row.line}: {text}")
            seen.setdefault(video, row.line)
            entries.append(Entry(video, root / row.values["path"], label))
        if problems:
            raise ConfigError(problems)
        if params.manifest is not None:
            entries = manifest_entries(params.manifest, root)
        if names is None:
            names = tuple(sorted(spelled.values()))
        if not names:
            raise ConfigError(f"{table.path}: lists no video")
        super().__init__(LabelSpace(space_id("csv", names), names), entries, params, table.path)


def _problem(row: Row, indexed: tuple[str, ...] | None) -> str:
    path, label = row.values["path"], row.values["label"]
    if not path:
        return "no path"
    if not label:
        return "no label"
    if indexed is not None and not (label.isdecimal() and int(label) < len(indexed)):
        return f"label {label!r} is no index below {len(indexed)}"
    return "" if normalise_label(label) else f"label {label!r} is no name"
