"""Which batches to do with care, and which videos are known to kill a worker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from vcr_core.atomic import write_json

Care = Literal["", "alone-first", "apart"]
"""How to do a batch: as always; each video by itself before, to see which one kills the worker;
or each video by itself for good, because only together they do."""


class Suspects:
    """A small file beside the logs; written by the parent, read by the worker when it starts.

    Args:
        folder: the run folder.
        name: the share's name.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._path = Path(folder) / "logs" / f"suspects-{name}.json"
        self._data: dict[str, Any] = {"care": {}, "blamed": {}}
        if self._path.is_file():
            self._data = json.loads(self._path.read_text(encoding="utf-8"))

    def care(self, batch: int) -> Care:
        """Return how to do a batch."""
        care: Care = self._data["care"].get(str(batch), "")
        return care

    @property
    def blamed(self) -> dict[str, str]:
        """Videos that get an error record instead of another try, with the reason."""
        return dict(self._data["blamed"])

    def handle(self, batch: int, care: Care) -> None:
        """Do this batch with such care from now on."""
        self._data["care"][str(batch)] = care
        write_json(self._path, self._data)

    def blame(self, batch: int, video: str, reason: str) -> None:
        """Give this video up; the others of its batch are done as always again."""
        self._data["blamed"][video] = reason
        self.handle(batch, "")

    def clear(self) -> None:
        """Forget everything."""
        self._path.unlink(missing_ok=True)
