"""A file-backed memory of how many frames files decode to; safe to delete at any time."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vcr_core.atomic import to_json, write_text
from vcr_core.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class FrameCounts:
    """Frame counts of files that were once decoded to the end without an error.

    An entry holds for one path, size, modification time and decoder version; a file that was
    replaced, or another decoder, is a miss. Entries are files of their own, written atomically, so
    that any number of processes may share a folder.

    Attributes:
        folder: where the entries are kept; made when needed.
    """

    folder: Path

    def get(self, path: Path, backend: str) -> int | None:
        """Return the number of frames, or ``None`` where it is not known for certain.

        Args:
            path: an existing file.
            backend: library and version that would decode it.
        """
        with suppress(OSError, ValueError):
            key = _key(path, backend)
            entry = json.loads(self._file(key).read_text(encoding="utf-8"))
            if isinstance(entry, dict) and entry.get("key") == key:
                frames = entry.get("frames")
                if isinstance(frames, int) and not isinstance(frames, bool) and frames > 0:
                    return frames
        return None

    def put(self, path: Path, backend: str, frames: int) -> None:
        """Remember a count; a folder that cannot be written to is no error."""
        with suppress(OSError, StoreError):
            key = _key(path, backend)
            write_text(self._file(key), to_json({"schema": 1, "key": key, "frames": frames}) + "\n")

    def forget(self, path: Path, backend: str) -> None:
        """Drop the entry of a file, if there is one."""
        with suppress(OSError):
            self._file(_key(path, backend)).unlink()

    def _file(self, key: dict[str, Any]) -> Path:
        name = hashlib.blake2b(to_json(key).encode(), digest_size=16).hexdigest()
        return self.folder / name[:2] / f"{name}.json"


def _key(path: Path, backend: str) -> dict[str, Any]:
    state = path.stat()
    # Names that are not valid text hold lone surrogates; ASCII JSON writes those as escapes.
    return {
        "path": str(path.absolute()),
        "size": state.st_size,
        "mtime_ns": state.st_mtime_ns,
        "backend": backend,
    }
