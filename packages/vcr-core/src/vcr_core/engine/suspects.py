"""Which batches to do one video at a time, and which videos are known to kill a worker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vcr_core.atomic import write_json


class Suspects:
    """A small file beside the logs; written by the parent, read by the worker when it starts.

    Args:
        folder: the run folder.
        name: the share's name.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._path = Path(folder) / "logs" / f"suspects-{name}.json"
        self._data: dict[str, Any] = {"alone": [], "blamed": {}}
        if self._path.is_file():
            self._data = json.loads(self._path.read_text(encoding="utf-8"))

    @property
    def alone(self) -> frozenset[int]:
        """Batches whose videos are to be done one at a time."""
        return frozenset(self._data["alone"])

    @property
    def blamed(self) -> dict[str, str]:
        """Videos that get an error record instead of another try, with the reason."""
        return dict(self._data["blamed"])

    def isolate(self, batch: int) -> None:
        """Do this batch one video at a time from now on."""
        self._data["alone"] = sorted({*self._data["alone"], batch})
        write_json(self._path, self._data)

    def blame(self, batch: int, video: str, reason: str) -> None:
        """Give this video up; the others of its batch are stacked again."""
        self._data["blamed"][video] = reason
        self._data["alone"] = [b for b in self._data["alone"] if b != batch]
        write_json(self._path, self._data)

    def clear(self) -> None:
        """Forget everything."""
        self._path.unlink(missing_ok=True)
