"""Whole splits as memory-mapped ``.npy`` files."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vcr_core.datasets.motion.generator import (
    DEFAULT_SEED,
    GENERATOR_VERSION,
    clip_labels,
    generate_clip,
    split_size,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class SplitArrays:
    """A whole split.

    Attributes:
        clips: ``[n, T, S, S, 3]`` uint8, a read-only memory map.
        motion: ``[n]`` int64 motion labels.
        shape: ``[n]`` int64 shape labels.
        path: the file behind ``clips``.
    """

    clips: NDArray[np.uint8]
    motion: NDArray[np.int64]
    shape: NDArray[np.int64]
    path: Path


def cache_name(
    split: str, count: int, *, base_seed: int, frames: int, size: int, hardness: float
) -> str:
    """File name that identifies the content of a cached split."""
    version = GENERATOR_VERSION.replace("/", "-")
    return f"{version}-{split}-n{count}-t{frames}-s{size}-seed{base_seed}-h{hardness:g}.npy"


def load_split(
    folder: Path,
    split: str,
    *,
    count: int | None = None,
    base_seed: int = DEFAULT_SEED,
    frames: int = 16,
    size: int = 64,
    hardness: float = 1.0,
) -> SplitArrays:
    """Open a cached split, generating it first if the folder lacks it.

    The file appears under its final name only when it is complete, so an interrupted or a
    concurrent call never leaves a partial file behind under that name.

    Args:
        folder: where the file lives; created if missing.
        split: ``train``, ``val`` or ``test``.
        count: number of clips; the split's default if ``None``.
        base_seed: seed of the whole data set.
        frames: frames per clip.
        size: frame side in pixels.
        hardness: factor on the nuisance terms.

    Raises:
        ValueError: as ``generate_clip``, or a count below 1.
        OSError: the folder cannot be written.
    """
    total = split_size(split) if count is None else count
    if total < 1:
        msg = f"count must be at least 1, got {total}"
        raise ValueError(msg)
    name = cache_name(
        split, total, base_seed=base_seed, frames=frames, size=size, hardness=hardness
    )
    path = Path(folder) / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, split, total, base_seed, frames, size, hardness)
    clips: NDArray[np.uint8] = np.load(path, mmap_mode="r", allow_pickle=False)
    labels = np.array(
        [clip_labels(split, index, base_seed=base_seed) for index in range(total)], dtype=np.int64
    )
    return SplitArrays(clips, labels[:, 0], labels[:, 1], path)


def _write(
    path: Path, split: str, count: int, base_seed: int, frames: int, size: int, hardness: float
) -> None:
    # Not tempfile: its files are private to the user, and a cache may be shared.
    partial = path.with_name(f"{path.stem}.{uuid.uuid4().hex}.part")
    try:
        clips = np.lib.format.open_memmap(
            partial, mode="w+", dtype=np.uint8, shape=(count, frames, size, size, 3)
        )
        for index in range(count):
            clip = generate_clip(
                split, index, base_seed=base_seed, frames=frames, size=size, hardness=hardness
            )
            clips[index] = clip.frames
        clips.flush()
        del clips
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
