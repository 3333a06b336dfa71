"""Files that are rewritten: a reader sees the old content or the new one, never a half."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core.errors import StoreError
from vcr_core.storage import writing

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def replacing(path: Path | str) -> Iterator[Path]:
    """Give a temporary path in the same folder that replaces ``path`` if the block succeeds.

    For libraries that want to write a file themselves. The folder is created; permissions of an
    existing file are kept.

    Args:
        path: the file to replace.

    Yields:
        An existing empty file beside ``path``, with the same suffix.

    Raises:
        StorageRefused: if the folder cannot be written to; ``path`` is untouched.
    """
    with writing(path):
        yield from _replacing(Path(path))


def _replacing(path: Path) -> Iterator[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(
        prefix=f".{path.name}.", suffix=f".tmp{path.suffix}", dir=path.parent
    )
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes files only their owner can read; results are for sharing.
        temporary.chmod(path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~_umask())
        _sync(temporary)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def write_bytes(path: Path | str, data: bytes) -> None:
    """Replace the content of ``path`` with ``data``, completely or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: Path | str, text: str) -> None:
    """Replace the content of ``path`` with UTF-8 ``text``; line ends stay as they are."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path | str, data: Any) -> None:
    """Replace ``path`` with indented JSON; NaN and infinities are refused.

    Raises:
        StoreError: if ``data`` holds something that JSON has no form for.
    """
    write_text(path, to_json(data, indent=2) + "\n")


def to_json(data: Any, *, indent: int | None = None) -> str:
    """Return ``data`` as strict JSON in ASCII, so any reader and any locale can take it.

    Raises:
        StoreError: naming the place of a NaN, an infinity or a value that is not plain data.
    """
    separators = (",", ":") if indent is None else None
    try:
        return json.dumps(data, allow_nan=False, indent=indent, separators=separators)
    except (ValueError, TypeError) as error:
        place = _unwritable(data)
        text = f"{place[0]} is {place[1]!r}; write null and say why" if place else str(error)
        raise StoreError(f"not writable as JSON: {text}") from error


def sync_folder(folder: Path) -> None:
    """Make a new or renamed entry of ``folder`` survive a power cut, where the system can."""
    # Windows cannot open folders, and some network file systems refuse to sync them.
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _umask() -> int:
    current = os.umask(0o022)
    os.umask(current)
    return current


def _unwritable(data: Any, place: str = "value") -> tuple[str, Any] | None:
    """Return where the first value that JSON cannot hold is, and the value."""
    if isinstance(data, dict):
        children = [(f"{place}.{k}" if place != "value" else str(k), v) for k, v in data.items()]
    elif isinstance(data, list | tuple):
        children = [(f"{place}[{i}]", v) for i, v in enumerate(data)]
    elif data is None or isinstance(data, str | int | bool):
        return None
    elif isinstance(data, float):
        return None if data - data == 0 else (place, data)
    else:
        return place, data
    for child_place, child in children:
        found = _unwritable(child, child_place)
        if found:
            return found
    return None
