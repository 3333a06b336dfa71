"""Strips of frames from kept clips: exact pixels, one row for each version of the clip."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vcr_core.reporters.clips import TIMES, KeptClip, View, imaging

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MIN_PANEL = 96
MAX_PANEL = 160
GAP = 2
GAP_GREY = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class StripRow:
    """One row of frames.

    Attributes:
        title: ``clean``, ``adversarial``, ``defended`` or ``difference`` with its gain.
        caption: what the model says about this clip, or how to read the row.
        uri: PNG as a ``data:`` address.
        width: width of the image in pixels.
        height: height of the image in pixels.
    """

    title: str
    caption: str
    uri: str
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """The rows of one clip.

    Attributes:
        frames: positions of the frames shown, from 0.
        total: frames of the clip.
        note: how the pixels were scaled for display.
        rows: clean, adversarial, perhaps defended, difference.
    """

    frames: tuple[int, ...]
    total: int
    note: str
    rows: tuple[StripRow, ...]

    @property
    def bytes(self) -> int:
        """What the strip adds to the page."""
        return sum(len(row.uri) for row in self.rows)


def make_strip(clip: KeptClip) -> Strip:
    """Return evenly spaced frames of a clip.

    Raises:
        ComponentUnavailable: when numpy or Pillow is not installed.
    """
    height, width = clip.size
    chosen = choose_frames(clip.total, 8 if max(height, width) <= MAX_PANEL else 4)
    scale = choose_scale(height, width)
    return Strip(
        frames=chosen,
        total=clip.total,
        note=scale_note(scale, height, width),
        rows=tuple(_row(view, chosen, scale) for view in clip.views),
    )


def choose_frames(total: int, limit: int) -> tuple[int, ...]:
    """Return up to ``limit`` evenly spaced positions out of ``total``, ends included.

    Example:
        >>> choose_frames(16, 4), choose_frames(3, 8), choose_frames(5, 1)
        ((0, 5, 10, 15), (0, 1, 2), (2,))
    """
    if limit < 1:
        return ()
    if total <= limit:
        return tuple(range(total))
    if limit == 1:
        return (total // 2,)
    return tuple(round(i * (total - 1) / (limit - 1)) for i in range(limit))


def choose_scale(height: int, width: int) -> int:
    """Return the integer factor of enlargement, or its negative for a reduction.

    The shorter side is enlarged to at least 96 pixels; frames whose shorter side is above 160
    are reduced by leaving out pixels, so that a perturbation is not averaged away.

    Example:
        >>> choose_scale(32, 32), choose_scale(112, 112), choose_scale(240, 320)
        (3, 1, -2)
    """
    side = min(height, width)
    if side < MIN_PANEL:
        return (MIN_PANEL + side - 1) // side
    return 1 if side <= MAX_PANEL else -((side + MAX_PANEL - 1) // MAX_PANEL)


def scale_note(scale: int, height: int, width: int) -> str:
    """Return how the frames were scaled, in words."""
    size = f"{width}{TIMES}{height} pixels"
    if scale == 1:
        return size
    if scale > 1:
        return f"{size}, each shown as {scale}{TIMES}{scale}"
    every = {2: "2nd", 3: "3rd"}.get(-scale, f"{-scale}th")
    return f"{size}, every {every} pixel shown"


def encode_png(pixels: NDArray[np.uint8]) -> str:
    """Return ``[H, W, 3]`` uint8 as a ``data:image/png`` address."""
    _, image = imaging()
    buffer = io.BytesIO()
    image.fromarray(pixels).save(buffer, format="PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _row(view: View, chosen: Sequence[int], scale: int) -> StripRow:
    """Return one row; frames of another size than the clip's are shown at their own scale."""
    np, _ = imaging()
    clip = view.frames
    frames = [resize(clip[min(i, len(clip) - 1)], scale) for i in chosen]
    height, width = frames[0].shape[:2]
    canvas = np.full((height, len(frames) * (width + GAP) - GAP, 3), GAP_GREY, np.uint8)
    for position, frame in enumerate(frames):
        left = position * (width + GAP)
        canvas[:, left : left + width] = frame
    return StripRow(
        title=view.title,
        caption=view.caption,
        uri=encode_png(canvas),
        width=canvas.shape[1],
        height=canvas.shape[0],
    )


def resize(frame: NDArray[np.uint8], scale: int) -> NDArray[np.uint8]:
    """Enlarge by repeating pixels, or reduce by leaving pixels out."""
    if scale > 1:
        return frame.repeat(scale, axis=0).repeat(scale, axis=1)
    return frame if scale == 1 else frame[::-scale, ::-scale]
