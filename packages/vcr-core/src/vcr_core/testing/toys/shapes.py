"""A generated dataset of moving shapes: 8 directions by 3 shapes = 24 videos, no files."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vcr_core.protocols import VideoItem
from vcr_core.testing.toys.arrays import array_hash, clip_of
from vcr_core.testing.toys.labels import DIRECTIONS, SHAPE_LABELS, SHAPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from vcr_core.protocols import Sampler
    from vcr_core.video.info import Clip

FRAMES = 12
SIZE = 32
_SPEED = 1.0
_RADIUS = 6.0
_SOFT_EDGE = 3.0
_CONTRAST = 0.4


def draw(direction: int, shape: int, frames: int = FRAMES, size: int = SIZE) -> NDArray[np.uint8]:
    """Return one video ``[frames, size, size, 3]`` uint8: a soft shape that moves 1 pixel a frame.

    Args:
        direction: index in ``DIRECTIONS``.
        shape: index in ``SHAPES``.
        frames: number of frames.
        size: side in pixels.
    """
    angle = math.tau * direction / len(DIRECTIONS)
    steps = (np.arange(frames) - (frames - 1) / 2) * _SPEED
    grid = np.arange(size) - (size - 1) / 2
    x = grid[None, None, :] - (steps * math.cos(angle))[:, None, None]
    y = grid[None, :, None] + (steps * math.sin(angle))[:, None, None]
    distance = (
        np.hypot(x, y),
        np.maximum(np.abs(x), np.abs(y)),
        (np.abs(x) + np.abs(y)) / math.sqrt(2),
    )[shape]
    cover = np.clip(0.5 + (_RADIUS - distance) / _SOFT_EDGE, 0, 1)[..., None]
    colour = np.roll(np.array([0.85, 0.7, 0.55]), shape)
    image = 0.4 + cover * (colour - 0.3) * _CONTRAST
    return np.rint(image * 255).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class ShapeSource:
    """Frames of one video, drawn when read."""

    direction: int
    shape: int

    @property
    def name(self) -> str:
        """Generator id, ``shapes:<direction>/<shape>``."""
        return f"shapes:{DIRECTIONS[self.direction]}/{SHAPES[self.shape]}"

    def read(self, sampler: Sampler) -> Clip:
        """Return what the sampler's plan uses."""
        return clip_of(self.name, draw(self.direction, self.shape), sampler)

    def sha256(self) -> str:
        """Return the hash of the drawn frames."""
        return array_hash(draw(self.direction, self.shape))


class ShapesDataset:
    """The 24 videos; ids are ``<direction>/<shape>``."""

    labels = SHAPE_LABELS

    def ids(self) -> Sequence[str]:
        """Return the ids in alphabetical order."""
        return sorted(f"{d}/{s}" for d in DIRECTIONS for s in SHAPES)

    def item(self, video_id: str) -> VideoItem:
        """Return one video without drawing it.

        Raises:
            KeyError: for an id that does not exist.
        """
        direction, _, shape = video_id.partition("/")
        if direction not in DIRECTIONS or shape not in SHAPES:
            raise KeyError(video_id)
        label = DIRECTIONS.index(direction)
        return VideoItem(video_id, label, ShapeSource(label, SHAPES.index(shape)))
