"""Versions of a video side by side, with captions above them and never on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from vcr_core.errors import ComponentUnavailable

if TYPE_CHECKING:
    from numpy.typing import NDArray

SMALLEST: Final = 224
"""Smaller frames are enlarged until their shorter side has so many pixels."""

LARGEST: Final = 640
"""Of larger frames only every second, third… pixel is shown."""

LINES: Final = 4
_NEUTRAL: Final = 128
_GAP: Final = 4
_LINE: Final = 17
_MARGIN: Final = 4
_FONT_SIZE: Final = 13
_INK: Final = (20, 20, 20)
_PAPER: Final = (245, 245, 245)


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """One version of a video.

    Attributes:
        lines: up to :data:`LINES` lines of text, the first one is the title.
        frames: ``[T, H, W, 3]`` uint8.
    """

    lines: tuple[str, ...]
    frames: NDArray[np.uint8]


def side_by_side(panels: Sequence[Panel]) -> NDArray[np.uint8]:
    """Return ``[T, H, W, 3]`` uint8 of all panels from left to right, for a preview.

    All panels are scaled by the same whole factor without smoothing. The last frame of a shorter
    version stays until the longest one ends.

    Raises:
        ComponentUnavailable: if Pillow is not installed, which draws the captions.
    """
    scale = choose_scale(*panels[0].frames.shape[1:3])
    total = max(len(panel.frames) for panel in panels)
    columns = [_column(panel, scale, total) for panel in panels]
    height = max(column.shape[1] for column in columns)
    width = sum(column.shape[2] for column in columns) + _GAP * (len(columns) - 1)
    canvas: NDArray[np.uint8] = np.full((total, height, width, 3), _NEUTRAL, np.uint8)
    left = 0
    for column in columns:
        canvas[:, : column.shape[1], left : left + column.shape[2]] = column
        left += column.shape[2] + _GAP
    return canvas


def choose_scale(height: int, width: int) -> int:
    """Return how often a pixel is repeated, or the negative step in which pixels are taken.

    Example:
        >>> choose_scale(64, 64), choose_scale(240, 320), choose_scale(1080, 1920)
        (4, 1, -3)
    """
    long, short = max(height, width), min(height, width)
    if long > LARGEST:
        return -math.ceil(long / LARGEST)
    return min(math.ceil(SMALLEST / short), LARGEST // long) if short < SMALLEST else 1


def _column(panel: Panel, scale: int, total: int) -> NDArray[np.uint8]:
    frames = panel.frames
    if scale > 1:
        frames = frames.repeat(scale, axis=1).repeat(scale, axis=2)
    elif scale < 0:
        frames = frames[:, ::-scale, ::-scale]
    height, width = frames.shape[1:3]
    wide = max(width, SMALLEST)
    caption = _caption(panel.lines, wide)
    top = len(caption)
    column: NDArray[np.uint8] = np.full((total, top + height, wide, 3), _NEUTRAL, np.uint8)
    column[:, :top] = caption
    column[: len(frames), top:, :width] = frames
    column[len(frames) :, top:, :width] = frames[-1]
    return column


def _caption(lines: Sequence[str], width: int) -> NDArray[np.uint8]:
    """Return ``[H, W, 3]``: lines of text, each cut to the width."""
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as error:
        raise ComponentUnavailable(
            "the captions of previews need Pillow: pip install 'vcr-core[report]'; without "
            "previews: --preview none"
        ) from error
    font = ImageFont.load_default(_FONT_SIZE)
    image = Image.new("RGB", (width, 2 * _MARGIN + LINES * _LINE), _PAPER)
    draw = ImageDraw.Draw(image)
    for number, line in enumerate(lines[:LINES]):
        text = _fitting(drawable(line), font, width - 2 * _MARGIN)
        draw.text((_MARGIN, _MARGIN + number * _LINE), text, fill=_INK, font=font)
    return np.asarray(image)


def drawable(text: str) -> str:
    """Return text of which the built-in font has every character; others become ``?``.

    Example:
        >>> drawable(f"dance {chr(0x6253)}{chr(0x202E)}")
        'dance ??'
    """
    return "".join(c if c.isprintable() and ord(c) < 0x100 else "?" for c in text)


def _fitting(text: str, font: Any, width: int) -> str:
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(text + "...") > width:
        text = text[:-1]
    return text + "..."
