"""Draw the style pictures that vcr-attacks ships: ``python tools/make_styles.py [FOLDER]``.

Needs numpy and Pillow. The same seed gives the same pixels; `src/vcr_attacks/styles` holds what it
drew.
"""

from __future__ import annotations

import colorsys
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Field = NDArray[np.float64]

SIDE = 96
SEED = 20260
LEVELS = 24
FOLDER = Path(__file__).parents[1] / "src" / "vcr_attacks" / "styles"


def clouds(draw: np.random.Generator, octaves: int = 5, first: int = 3) -> Field:
    """Return smooth noise ``[SIDE, SIDE]`` in [0, 1], the sum of ever finer grids."""
    total = np.zeros((SIDE, SIDE))
    for octave in range(octaves):
        cells = first * 2**octave
        grid = draw.random((cells + 1, cells + 1))
        at = np.linspace(0, cells, SIDE, endpoint=False)
        low = at.astype(int)
        part = (1 - np.cos(np.pi * (at - low))) / 2
        top = grid[low][:, low] * (1 - part) + grid[low][:, low + 1] * part
        bottom = grid[low + 1][:, low] * (1 - part) + grid[low + 1][:, low + 1] * part
        total += (top * (1 - part[:, None]) + bottom * part[:, None]) / 2**octave
    return (total - total.min()) / np.ptp(total)


def places() -> tuple[Field, Field]:
    """Return rows and columns of the pixels in [0, 1)."""
    rows, columns = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    return rows, columns


def mosaic(draw: np.random.Generator, count: int, *, edges: bool) -> Field:
    """Return cells around random points: a value each, or how far the next cell is."""
    rows, columns = places()
    points = draw.random((count, 2))
    apart = np.hypot(rows[..., None] - points[:, 0], columns[..., None] - points[:, 1])
    if edges:
        nearest = np.sort(apart, axis=-1)
        return np.clip((nearest[..., 1] - nearest[..., 0]) * 8, 0, 1)
    return draw.random(count)[apart.argmin(axis=-1)]


def strokes(draw: np.random.Generator, count: int, turn: float) -> Field:
    """Return short brush strokes along a direction that drifts."""
    rows, columns = places()
    field = clouds(draw, 2)
    for _ in range(count):
        row, column = draw.random(2)
        angle = turn + draw.normal() * 0.4
        along = np.cos(angle) * (columns - column) + np.sin(angle) * (rows - row)
        across = -np.sin(angle) * (columns - column) + np.cos(angle) * (rows - row)
        inside = (np.abs(along) < 0.09) & (np.abs(across) < 0.016)
        field[inside] = draw.random() + along[inside] * 2
    return np.clip(field, 0, 1)


def waves(draw: np.random.Generator, number: float, bend: float) -> Field:
    """Return stripes bent by noise."""
    rows, columns = places()
    return (1 + np.sin(2 * np.pi * (number * (rows + columns / 3) + bend * clouds(draw, 3)))) / 2


def rings(draw: np.random.Generator, number: float) -> Field:
    """Return rings around a point, bent by noise."""
    rows, columns = places()
    apart = np.hypot(rows - draw.random(), columns - draw.random())
    return (1 + np.sin(2 * np.pi * number * apart + 3 * clouds(draw, 2))) / 2


def dots(draw: np.random.Generator, number: int) -> Field:
    """Return a grid of soft dots of changing size."""
    rows, columns = places()
    size = 0.2 + 0.4 * clouds(draw, 2)
    inner = np.hypot((rows * number) % 1 - 0.5, (columns * number) % 1 - 0.5)
    return np.clip((size - inner) * 6, 0, 1) * 0.8 + 0.2 * clouds(draw, 4)


def plaid(draw: np.random.Generator, number: int) -> Field:
    """Return crossing bands."""
    bands = draw.random(number)
    line = bands[(np.arange(SIDE) * number // SIDE) % number]
    return (line[:, None] + line[None]) / 2 * 0.9 + 0.1 * clouds(draw, 5)


PATTERNS: dict[str, Callable[[np.random.Generator], Field]] = {
    "clouds": clouds,
    "marble": lambda draw: waves(draw, 3, 3.0),
    "waves": lambda draw: waves(draw, 6, 0.8),
    "stripes": lambda draw: waves(draw, 11, 0.1),
    "rings": lambda draw: rings(draw, 5),
    "ripples": lambda draw: rings(draw, 12),
    "mosaic": lambda draw: mosaic(draw, 60, edges=False),
    "tiles": lambda draw: mosaic(draw, 180, edges=False),
    "cracks": lambda draw: mosaic(draw, 45, edges=True),
    "pebbles": lambda draw: mosaic(draw, 140, edges=True),
    "brush": lambda draw: strokes(draw, 500, 0.6),
    "grass": lambda draw: strokes(draw, 700, 1.5),
    "hay": lambda draw: strokes(draw, 400, 2.5),
    "dots": lambda draw: dots(draw, 8),
    "spots": lambda draw: dots(draw, 4),
    "plaid": lambda draw: plaid(draw, 24),
}


def palette(draw: np.random.Generator, hue: float) -> Field:
    """Return ``[LEVELS, 3]``: from a dark shade of a hue over its neighbour to a light contrast."""
    stops = [
        colorsys.hsv_to_rgb(hue, 0.75, 0.25 + 0.2 * draw.random()),
        colorsys.hsv_to_rgb((hue + 0.08) % 1, 0.85, 0.7 + 0.3 * draw.random()),
        colorsys.hsv_to_rgb((hue + 0.45 + 0.1 * draw.random()) % 1, 0.45, 0.9),
    ]
    at = np.linspace(0, 2, LEVELS)
    return np.stack([np.interp(at, [0, 1, 2], [s[c] for s in stops]) for c in range(3)], axis=1)


def main() -> int:
    """Write every pattern with a palette of its own."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, pattern) in enumerate(PATTERNS.items()):
        draw = np.random.default_rng([SEED, number])
        steps = np.clip((pattern(draw) * LEVELS).astype(int), 0, LEVELS - 1)
        colours = (palette(draw, number / len(PATTERNS)) * 255).round().astype(np.uint8)
        picture = Image.fromarray(steps.astype(np.uint8), mode="P")
        picture.putpalette(colours.tobytes())
        picture.save(folder / f"{name}.png", optimize=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
