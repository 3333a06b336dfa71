"""UCF101 with its three official splits."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from vcr_core.datasets.labels import label_index, normalise_label
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
    from vcr_core.datasets.params import Ucf101Params


class Ucf101Dataset(ListedDataset):
    """Files ``<Class>/v_<Class>_gXX_cYY.avi``, listed by ``testlist0N.txt`` or ``trainlist0N.txt``.

    Classes are those of ``classInd.txt`` in its order; ids are the listed paths without suffix.

    Args:
        params: root, split, fold, annotations and manifest.

    Raises:
        ConfigError: for list files that are missing or contradict each other.
    """

    def __init__(self, params: Ucf101Params) -> None:
        root = checked_root(params, "ucf101")
        lists = _list_folder(root, params)
        names = _class_names(lists / "classInd.txt")
        labels = LabelSpace("ucf101", names)
        if params.manifest is not None:
            entries, where = manifest_entries(params.manifest, root), params.manifest
        else:
            file = lists / f"{params.split}list{params.fold:02d}.txt"
            entries, where = _entries(root, file, names), str(file.absolute())
        super().__init__(labels, entries, params, where)


def _list_folder(root: Path, params: Ucf101Params) -> Path:
    if params.annotations is not None:
        return Path(params.annotations)
    places = (
        root,
        root / "ucfTrainTestlist",
        root / "annotations",
        root.parent / "ucfTrainTestlist",
    )
    found = first_existing(place / "classInd.txt" for place in places)
    if found is None:
        where = ", ".join(str(place.absolute()) for place in places)
        raise ConfigError(f"dataset 'ucf101': no classInd.txt in {where}; set dataset.annotations")
    return found.parent


def _class_names(file: Path) -> tuple[str, ...]:
    rows = _rows(file)
    names: dict[int, str] = {}
    for number, line in rows:
        index, _, name = line.partition(" ")
        if not index.isdecimal() or not name.strip():
            raise ConfigError(f"{file.absolute()}:{number}: expected '1 ClassName', found {line!r}")
        names[int(index)] = name.strip()
    if sorted(names) != list(range(1, len(rows) + 1)):
        raise ConfigError(f"{file.absolute()}: class numbers are not 1..{len(rows)}, each once")
    ordered = tuple(names[index] for index in sorted(names))
    label_index(ordered, str(file.absolute()))
    return ordered


def _entries(root: Path, file: Path, names: tuple[str, ...]) -> list[Entry]:
    index = label_index(names, str(file.absolute()))
    bases = [base for base in (root / "UCF-101", root / "videos") if base.is_dir()]
    base = bases[0] if bases else root
    entries: list[Entry] = []
    problems: list[str] = []
    for number, line in _rows(file):
        # Training lists add the 1-based class number; test lists have the path alone.
        path, _, stated = line.rpartition(" ")
        if not path or not stated.isdecimal():
            path, stated = line, ""
        listed = PurePosixPath(path.strip())
        name = listed.parts[0] if len(listed.parts) == 2 else ""
        position = index.get(normalise_label(name)) if name else None
        if position is None:
            text = f"expected <Class>/<file> with a class of classInd.txt, found {line!r}"
            problems.append(f"{file.absolute()}:{number}: {text}")
        elif stated and int(stated) != position + 1:
            text = f"class number {stated} is not that of {name!r} ({position + 1})"
            problems.append(f"{file.absolute()}:{number}: {text}")
        else:
            entries.append(Entry(str(listed.with_suffix("")), base / listed, name))
    if problems:
        raise ConfigError(problems)
    return entries


def _rows(file: Path) -> list[tuple[int, str]]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file.absolute()}: {error}") from error
    lines = enumerate(text.splitlines(), 1)
    return [(number, line.strip()) for number, line in lines if line.strip()]
