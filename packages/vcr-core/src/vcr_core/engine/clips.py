"""Frames kept for the eye: clean and adversarial 8-bit frames of a few videos."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core.atomic import write_bytes, write_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import Tensor

    from vcr_core.engine.contest import Result

ARTIFACTS = "artifacts"
INDEX = "clips.json"


class ClipKeeper:
    """Keeps the frames of the first videos of a run's order; one file and one sidecar a video.

    Args:
        folder: the run folder.
        wanted: ids to keep.
        eps: radius of the run's threat, for the sidecar.
    """

    def __init__(self, folder: Path, wanted: Iterable[str], eps: float) -> None:
        self._folder = folder / ARTIFACTS
        self._wanted = frozenset(wanted)
        self._eps = eps

    def __call__(self, video: str, result: Result) -> None:
        """Write the frames of ``video`` if it is one of the wanted ones and was attacked."""
        if video not in self._wanted or result.adversarial_frames is None:
            return
        import io

        import numpy as np

        name = hashlib.blake2b(video.encode(), digest_size=8).hexdigest()
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer,
            clean=_levels(result.clean_frames),
            adversarial=_levels(result.adversarial_frames),
        )
        self._folder.mkdir(parents=True, exist_ok=True)
        write_bytes(self._folder / f"{name}.npz", buffer.getvalue())
        fields = result.fields
        entry = {
            "video": video,
            "file": f"{name}.npz",
            "label": fields["label"],
            "clean": fields["clean"],
            "attacked": fields["attacked"],
            "target": fields.get("target"),
            "eps": self._eps,
        }
        write_json(self._folder / f"{name}.json", entry)


def write_index(folder: Path, order: Iterable[str]) -> None:
    """Collect the sidecars of a run folder in ``artifacts/clips.json``, in the run's order."""
    artifacts = folder / ARTIFACTS
    if not artifacts.is_dir():
        return
    entries: dict[str, Any] = {}
    for path in sorted(artifacts.glob("*.json")):
        if path.name != INDEX:
            entry = json.loads(path.read_text(encoding="utf-8"))
            entries[entry["video"]] = entry
    rank = {video: position for position, video in enumerate(order)}
    listed = sorted(entries.values(), key=lambda e: rank.get(e["video"], len(rank)))
    write_json(artifacts / INDEX, listed)


def _levels(frames: Tensor) -> Any:
    levels = (frames * 255).round().clamp(0, 255).to("cpu").permute(0, 2, 3, 1)
    return levels.contiguous().byte().numpy()
