"""Videos kept as NumPy files: ``.npy``, or ``.npz`` with the key ``frames``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from zipfile import BadZipFile

import numpy as np

from vcr_core.video.info import Clip, VideoInfo, VideoReadError
from vcr_core.video.planning import ask, untimed_clip, usable_count

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from vcr_core.protocols import Sampler


def probe_arrays(path: Path) -> VideoInfo:
    """Return size and number of frames of an array file.

    Raises:
        VideoReadError: if the file holds no video.
    """
    return _info(path, load_frames(path))


def read_arrays(
    path: Path, sampler: Sampler, max_frames: int | None, expected_frames: int | None
) -> Clip:
    """Return the frames of the sampler's plan.

    Raises:
        VideoReadError: if the file holds no video, or another number of frames than expected.
    """
    frames = load_frames(path)
    count = usable_count(str(path.absolute()), len(frames), max_frames, expected_frames)
    plan = ask(sampler, count, str(path.absolute()))
    chosen = frames[plan.distinct]
    if chosen.shape[-1] == 1:
        chosen = np.repeat(chosen, 3, axis=-1)
    return untimed_clip(chosen, plan, _info(path, frames), f"numpy {np.__version__}")


def load_frames(path: Path) -> NDArray[np.uint8]:
    """Return ``[T, H, W, 3]`` or ``[T, H, W, 1]`` uint8; an ``.npy`` file stays on disk.

    Raises:
        VideoReadError: for a broken file, a missing key, or another shape or type. Floats are
            refused because their range would have to be guessed.
    """
    name = str(path.absolute())
    try:
        if path.suffix.lower() == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                if "frames" not in archive.files:
                    keys = ", ".join(archive.files) or "nothing"
                    raise VideoReadError(name, "no_video_stream", f"no key 'frames', only {keys}")
                array = cast("NDArray[Any]", archive["frames"])
        else:
            array = cast("NDArray[Any]", np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError, EOFError, BadZipFile, MemoryError) as error:
        raise VideoReadError(name, "open", error) from error
    if array.ndim == 3:
        array = array[..., None]
    if array.dtype != np.uint8 or array.ndim != 4 or array.shape[-1] not in (1, 3):
        text = f"needs uint8 [T, H, W, 3] or [T, H, W], found {array.dtype} {list(array.shape)}"
        raise VideoReadError(name, "decode", text)
    return array


def _info(path: Path, frames: NDArray[np.uint8]) -> VideoInfo:
    return VideoInfo(
        path=str(path.absolute()),
        width=frames.shape[2],
        height=frames.shape[1],
        codec="rawvideo",
        container=path.suffix.lower().lstrip("."),
        rotation=0,
        pix_fmt="rgb24" if frames.shape[-1] == 3 else "gray",
        header_frames=len(frames),
    )
