"""What runs leave for each other: adversarial clips, predictions and readings of whole groups.

A store is a folder that may be deleted at any time. It has one folder for everything that is made
in the same way (a *shelf*), named by a hash of that way, and in it one file for each group of
videos. Files appear whole or not at all and carry their own hash; one that is damaged counts as
absent. When the store grows beyond its limit, the files that were not used for the longest time go
first.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import shutil
import threading
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core.atomic import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

logger = logging.getLogger(__name__)

FOLDER = "reuse"
"""Name of the store inside the folder of caches."""

REUSED = "reused"
"""How the note of a record begins whose attack was computed by another run."""

ABOUT_FILE = "about.json"
SUFFIX = ".entry"
LOOK_AFTER = 0.01
"""Of the limit: after so much of its own a process looks again at what others have written."""
ROOM = 0.9
"""What is left of the limit once files had to go, so that not every new one pushes one out."""

_MAGIC = b"vcr-reuse-1\n"
_FACTS = "facts"


@dataclass(frozen=True, slots=True)
class Shelf:
    """A way of making things.

    Attributes:
        name: folder name, unique for the way.
        about: what people want to know of it; does not count towards the name.
    """

    name: str
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """One file: named arrays, and plain data beside them."""

    arrays: Mapping[str, NDArray[Any]]
    facts: Any


@dataclass(frozen=True, slots=True)
class ShelfFacts:
    """A shelf as it lies on the disk: what it holds, how much, and when it was last used."""

    folder: Path
    about: Mapping[str, Any]
    entries: int
    size: int
    used: float


class ReuseStore:
    """A folder of shelves.

    Args:
        root: the folder; need not exist.
        limit: bytes that it may hold; nothing larger is kept.
    """

    def __init__(self, root: Path, limit: int) -> None:
        self.root = root
        self.limit = limit
        self._size: int | None = None
        self._written = 0  # since the last look: others write, too
        self._lock = threading.Lock()  # frames are kept by the thread that decodes ahead

    def has(self, shelf: Shelf) -> bool:
        """Return whether a shelf holds anything."""
        return (self.root / shelf.name).is_dir()

    def load(self, shelf: Shelf, key: str) -> Entry | None:
        """Return an entry, ``None`` where there is none or it is not what was written."""
        path = self._path(shelf, key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        entry = _decoded(data)
        if entry is None:
            logger.warning("%s is damaged; what it held is made anew", path)
            return None
        # So that what is in use is the last to go.
        with suppress(OSError):
            os.utime(path)
        return entry

    def save(
        self, shelf: Shelf, key: str, arrays: Mapping[str, NDArray[Any]], facts: Any = None
    ) -> bool:
        """Keep an entry and return whether it was kept.

        It is not where it alone would exceed the limit, or where the disk refuses it: a store
        that cannot be written to is no reason for a run to stop.
        """
        data = _encoded(arrays, facts)
        if len(data) > self.limit:
            return False
        with self._lock:
            return self._keep(shelf, self._path(shelf, key), data)

    def _keep(self, shelf: Shelf, path: Path, data: bytes) -> bool:
        try:
            if not (path.parent / ABOUT_FILE).is_file():
                _place(path.parent / ABOUT_FILE, to_json(dict(shelf.about), indent=2).encode())
            if self._size is None or self._written > LOOK_AFTER * self.limit:
                self._size = sum(size for _, size, _ in _files(self.root))
                self._written = 0
            if self._size + len(data) > self.limit:
                self._size = trim(self.root, int(ROOM * self.limit) - len(data))
            _place(path, data)
        except OSError as error:
            logger.warning("nothing is kept in %s: %s", self.root, error)
            return False
        self._size += len(data)
        self._written += len(data)
        return True

    def _path(self, shelf: Shelf, key: str) -> Path:
        return self.root / shelf.name / f"{key}{SUFFIX}"


def shelves(root: Path) -> list[ShelfFacts]:
    """Return the shelves of a store, the one used last first."""
    found: dict[Path, list[tuple[int, float]]] = {}
    for path, size, used in _files(root):
        found.setdefault(path.parent, []).append((size, used))
    listed = [
        ShelfFacts(
            folder=folder,
            about=_about(folder),
            entries=len(files),
            size=sum(size for size, _ in files),
            used=max(used for _, used in files),
        )
        for folder, files in found.items()
    ]
    return sorted(listed, key=lambda shelf: (-shelf.used, shelf.folder.name))


def clear(root: Path) -> None:
    """Delete a store."""
    if root.is_dir():
        shutil.rmtree(root)


def trim(root: Path, limit: int) -> int:
    """Delete the files unused for the longest time until ``limit`` bytes are left; return the rest.

    Left-overs of processes that were killed while writing count as files.
    """
    files = sorted(_files(root), key=lambda file: (file[2], file[0]))
    total = sum(size for _, size, _ in files)
    for path, size, _ in files:
        if total <= limit:
            break
        with suppress(OSError):
            path.unlink()
            total -= size
    return total


def _place(path: Path, data: bytes) -> None:
    """Write a file that appears whole; not forced to the disk, since readers check its hash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        fresh.write_bytes(data)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _files(root: Path) -> Iterator[tuple[Path, int, float]]:
    """Yield path, bytes and time of last use of every file that holds data."""
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.name != ABOUT_FILE:
                with suppress(OSError):
                    facts = path.stat()
                    yield path, facts.st_size, facts.st_mtime


def _about(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / ABOUT_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _encoded(arrays: Mapping[str, NDArray[Any]], facts: Any) -> bytes:
    import numpy as np

    buffer = io.BytesIO()
    text = np.frombuffer(to_json(facts).encode(), dtype=np.uint8)
    np.savez(buffer, **{_FACTS: text, **arrays})  # type: ignore[arg-type,unused-ignore]
    payload = buffer.getvalue()
    return _MAGIC + hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload


def _decoded(data: bytes) -> Entry | None:
    import numpy as np

    head = len(_MAGIC) + 65
    payload = data[head:]
    written = data[len(_MAGIC) : head].rstrip(b"\n")
    if not data.startswith(_MAGIC) or hashlib.sha256(payload).hexdigest().encode() != written:
        return None
    with np.load(io.BytesIO(payload), allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    return Entry(arrays, json.loads(arrays.pop(_FACTS).tobytes()))
