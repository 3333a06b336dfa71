"""Colour textures made of a base colour and three plane waves, evaluated separably."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

WAVES: Final = 3
MIN_CONTRAST: Final = 0.30
FORCED_CONTRAST: Final = 0.35


@dataclass(frozen=True, slots=True)
class Texture:
    """A sum of plane waves over the plane, in cycles per unit length.

    Attributes:
        base: mean colour ``[3]``, in [0.15, 0.85] as drawn.
        wave_x: ``[3]`` angular frequency along the first axis, radians per unit.
        wave_y: ``[3]`` angular frequency along the second axis.
        phase: ``[3]`` radians.
        colour: ``[3 waves, 3 channels]`` signed amplitudes.
    """

    base: Array
    wave_x: Array
    wave_y: Array
    phase: Array
    colour: Array


def draw_texture(rng: np.random.Generator, low: float, high: float) -> Texture:
    """Draw a texture whose wave count per unit length scales with n ~ U(low, high)."""
    base = rng.uniform(0.15, 0.85, size=3)
    scale = rng.uniform(low, high)
    frequency = 2.0 * math.pi * scale * rng.uniform(0.5, 1.0, size=WAVES)
    direction = rng.uniform(0.0, 2.0 * math.pi, size=WAVES)
    phase = rng.uniform(0.0, 2.0 * math.pi, size=WAVES)
    strength = rng.uniform(0.08, 0.22, size=(WAVES, 1))
    colour = rng.uniform(-1.0, 1.0, size=(WAVES, 3)) * strength
    return Texture(
        base, frequency * np.cos(direction), frequency * np.sin(direction), phase, colour
    )


def contrasting_base(background: Array, base: Array) -> Array:
    """Object base colour, moved away from the background's where the two nearly agree.

    Args:
        background: base colour ``[3]`` of the background.
        base: drawn base colour ``[3]`` of the object.

    Returns:
        ``base`` if some channel differs by at least 0.30; otherwise a copy whose most different
        channel is 0.35 away, on the side that it was already on unless that leaves [0, 1].
    """
    difference = base - background
    channel = int(np.argmax(np.abs(difference)))
    if abs(difference[channel]) >= MIN_CONTRAST:
        return base
    shift = math.copysign(FORCED_CONTRAST, difference[channel])
    if not 0.0 <= background[channel] + shift <= 1.0:
        shift = -shift
    result = base.copy()
    result[channel] = background[channel] + shift
    return result


def wave_field(
    texture: Texture, origin: Array, step_x: Array, step_y: Array, size: int
) -> NDArray[np.float32]:
    """Waves (without the base colour) on a pixel grid that moves and turns from frame to frame.

    The texture coordinate of pixel (row i, column j) in frame t is
    ``origin[t] + j * step_x[t] + i * step_y[t]``; being linear in i and j, each wave is a product
    of two one-dimensional waves: sin(a+b) = sin a cos b + cos a sin b.

    Args:
        texture: the waves.
        origin: ``[T, 2]`` texture coordinate of the first pixel.
        step_x: ``[T, 2]`` change per column.
        step_y: ``[T, 2]`` change per row.
        size: frame side S in pixels.

    Returns:
        ``[T, 3, S, S]`` float32, signed.
    """
    wave = np.stack([texture.wave_x, texture.wave_y])
    pixel = np.arange(size)
    along_x = (step_x @ wave)[:, :, None] * pixel
    along_y = (step_y @ wave)[:, :, None] * pixel + (origin @ wave + texture.phase)[:, :, None]
    rows = np.concatenate([np.sin(along_y), np.cos(along_y)], axis=1).astype(np.float32)
    columns = np.concatenate([np.cos(along_x), np.sin(along_x)], axis=1).astype(np.float32)
    colour = np.concatenate([texture.colour, texture.colour]).astype(np.float32)
    weighted = rows[:, None] * colour.T[None, :, :, None]
    field: NDArray[np.float32] = np.matmul(weighted.transpose(0, 1, 3, 2), columns[:, None])
    return field
