"""Copies of clips for looking at in a browser; lossy, so never scored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import av
import numpy as np

from vcr_core.atomic import replacing
from vcr_core.video.writer import check_frames, checked_rate, encode

if TYPE_CHECKING:
    from fractions import Fraction
    from pathlib import Path

    from numpy.typing import NDArray

_MARK: Final = "_preview"
_NEUTRAL: Final = 128


def preview_path(path: Path) -> Path:
    """Return ``path`` with ``_preview`` in its name and the suffix ``.mp4``.

    Example:
        >>> from pathlib import Path
        >>> preview_path(Path("a/clip.mkv")).as_posix()
        'a/clip_preview.mp4'
    """
    stem = path.stem if _MARK in path.stem else path.stem + _MARK
    return path.with_name(stem + ".mp4")


def write_preview(path: Path, frames: NDArray[np.uint8], *, fps: Fraction | None = None) -> Path:
    """Write an H.264 file that browsers play, and return its path (:func:`preview_path`).

    Args:
        path: where to write; the name is changed if it does not say that this is a preview.
        frames: ``[T, H, W, 3]`` uint8 RGB; odd sides get one more row or column of gray.
        fps: frame rate; 25 where it does not matter.

    Raises:
        UsageError: for another type or shape, or a rate that is not positive.
    """
    check_frames(frames)
    rate = checked_rate(fps)
    target = preview_path(path)
    with replacing(target) as temporary:
        options = {"movflags": "+faststart"}
        with av.open(
            f"file:{temporary}", "w", format="mp4", container_options=options
        ) as container:
            encode(
                container,
                pad_to_even(frames),
                rate,
                codec="libx264",
                pix_fmt="yuv420p",
                options={"crf": "18", "preset": "veryfast"},
            )
    return target


def pad_to_even(frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return ``[T, H, W, 3]`` with even sides, extended by gray below and to the right."""
    height, width = frames.shape[1:3]
    padding = ((0, 0), (0, height % 2), (0, width % 2), (0, 0))
    return np.pad(frames, padding, constant_values=_NEUTRAL)
