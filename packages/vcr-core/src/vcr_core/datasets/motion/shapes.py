"""Signed distances of the eight SynthMotion shapes, in units of the object's radius."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from vcr_core.datasets.motion.labels import APPEARANCE_LABELS

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Array = NDArray[np.float32]

ASYMMETRIC_SHAPES: Final[tuple[int, ...]] = (1, 2, 3, 5, 6, 7)
"""Shapes whose rotation is visible from the outline; disc and ring are left out."""

_STAR_INNER = 0.45
_CRESCENT_SHIFT = 0.5
_CRESCENT_RADIUS = 0.8


def _box(u: Array, v: Array, half_u: float, half_v: float) -> Array:
    outside: Array = np.maximum(np.abs(u) - np.float32(half_u), np.abs(v) - np.float32(half_v))
    return outside


def _length(u: Array, v: Array) -> Array:
    length: Array = np.sqrt(u * u + v * v)
    return length


def _disc(u: Array, v: Array) -> Array:
    return _length(u, v) - np.float32(1.0)


def _square(u: Array, v: Array) -> Array:
    return _box(u, v, 0.8, 0.8)


def _triangle(u: Array, v: Array) -> Array:
    slope = np.float32(math.sqrt(3.0) / 2.0)
    side: Array = np.maximum(-u, np.float32(0.5) * u + slope * np.abs(v)) - np.float32(0.5)
    return side


def _plus(u: Array, v: Array) -> Array:
    union: Array = np.minimum(_box(u, v, 1.0, 0.33), _box(u, v, 0.33, 1.0))
    return union


def _ring(u: Array, v: Array) -> Array:
    band: Array = np.abs(_length(u, v) - np.float32(0.75)) - np.float32(0.25)
    return band


def _star(u: Array, v: Array) -> Array:
    # Fold the plane into half of one of five sectors; there the outline is one straight edge
    # from the tip (1, 0) to the notch.
    sector = np.float32(2.0 * math.pi / 5.0)
    angle: Array = np.arctan2(v, u)
    turns: Array = np.rint(angle / sector)
    folded: Array = np.abs(angle - turns * sector)
    notch_u = _STAR_INNER * math.cos(math.pi / 5.0)
    notch_v = _STAR_INNER * math.sin(math.pi / 5.0)
    length = math.hypot(1.0 - notch_u, notch_v)
    normal_u = np.float32(notch_v / length)
    normal_v = np.float32((1.0 - notch_u) / length)
    cos: Array = np.cos(folded)
    sin: Array = np.sin(folded)
    return _length(u, v) * (cos * normal_u + sin * normal_v) - normal_u


def _bar(u: Array, v: Array) -> Array:
    return _box(u, v, 1.0, 0.33)


def _crescent(u: Array, v: Array) -> Array:
    shifted = u - np.float32(_CRESCENT_SHIFT)
    bite = _length(shifted, v) - np.float32(_CRESCENT_RADIUS)
    rest: Array = np.maximum(_disc(u, v), -bite)
    return rest


_SHAPES: Final[tuple[Callable[[Array, Array], Array], ...]] = (
    _disc,
    _square,
    _triangle,
    _plus,
    _ring,
    _star,
    _bar,
    _crescent,
)


def signed_distance(shape: int, u: Array, v: Array) -> Array:
    """Distance to the outline of a shape, negative inside (exact near straight edges).

    Args:
        shape: index into ``APPEARANCE_LABELS``.
        u: first object coordinate, float32, any shape; the object's circumscribed radius is 1.
        v: second object coordinate, same shape.

    Returns:
        Float32 of the same shape, in units of the radius.

    Raises:
        ValueError: unknown shape.
    """
    if not 0 <= shape < len(APPEARANCE_LABELS):
        msg = f"unknown shape {shape}; expected 0..{len(APPEARANCE_LABELS) - 1}"
        raise ValueError(msg)
    return _SHAPES[shape](u, v)
