"""Baseline JPEG as torch operations: exact rounding for a defense, soft rounding for its gradient.

ITU-T Recommendation T.81, Annexes A and K; colours as in JFIF 1.02. Values are 0..255 here.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

LUMINANCE = (
    (16, 11, 10, 16, 24, 40, 51, 61),
    (12, 12, 14, 19, 26, 58, 60, 55),
    (14, 13, 16, 24, 40, 57, 69, 56),
    (14, 17, 22, 29, 51, 87, 80, 62),
    (18, 22, 37, 56, 68, 109, 103, 77),
    (24, 35, 55, 64, 81, 104, 113, 92),
    (49, 64, 78, 87, 103, 121, 120, 101),
    (72, 92, 95, 98, 112, 100, 103, 99),
)
"""Table K.1."""

CHROMINANCE = (
    (17, 18, 24, 47, 99, 99, 99, 99),
    (18, 21, 26, 66, 99, 99, 99, 99),
    (24, 26, 56, 99, 99, 99, 99, 99),
    (47, 66, 99, 99, 99, 99, 99, 99),
    *((99,) * 8,) * 4,
)
"""Table K.2."""

_TO_YCC = (
    (0.299, 0.587, 0.114),
    (-0.168735892, -0.331264108, 0.5),
    (0.5, -0.418687589, -0.081312411),
)
_TO_RGB = ((1.0, 0.0, 1.402), (1.0, -0.344136286, -0.714136286), (1.0, 1.772, 0.0))


def quantisation_table(
    base: tuple[tuple[int, ...], ...], quality: int
) -> tuple[tuple[int, ...], ...]:
    """Return the table that libjpeg uses at a quality of 1..100.

    Example:
        >>> quantisation_table(LUMINANCE, 50) == LUMINANCE
        True
    """
    scale = 5000 // quality if quality < 50 else 200 - 2 * quality
    return tuple(tuple(min(max((v * scale + 50) // 100, 1), 255) for v in row) for row in base)


def soft_round(values: Tensor) -> Tensor:
    """Return ``round(v) + (v - round(v))³``: close to rounding, with a gradient almost everywhere.

    Shin & Song, "JPEG-resistant adversarial images", NIPS workshop 2017, equation (2).
    """
    rounded = values.round()
    return rounded + (values - rounded).pow(3)


def straight_through_round(values: Tensor) -> Tensor:
    """Return rounded values with the gradient of the identity."""
    return values + (values.round() - values).detach()


def whole_samples(samples: Tensor) -> Tensor:
    """Return samples as a codec stores them between its stages: rounded, in 0..255."""
    return samples.round().clamp(0, 255)


def compress(
    levels: Tensor,
    quality: int,
    *,
    subsample: bool,
    rounding: Callable[[Tensor], Tensor],
    samples: Callable[[Tensor], Tensor],
) -> Tensor:
    """Return RGB frames as JPEG leaves them.

    Args:
        levels: ``[N, 3, H, W]`` in 0..255, any size.
        quality: 1..100.
        subsample: 4:2:0 if true, else 4:4:4.
        rounding: what is done to DCT coefficients after the division by the table.
        samples: what is done to samples between stages; :func:`whole_samples` in a real codec,
            the identity where a gradient is wanted.

    Returns:
        The same shape.
    """
    height, width = levels.shape[-2:]
    offset = levels.new_tensor([0.0, 128.0, 128.0]).view(1, 3, 1, 1)
    ycc = samples(torch.einsum("ij,njhw->nihw", levels.new_tensor(_TO_YCC), levels) + offset)
    luma, chroma = ycc[:, :1], ycc[:, 1:]
    if subsample:
        chroma = samples(_halve(chroma))
    luma = samples(_code_blocks(luma, quantisation_table(LUMINANCE, quality), rounding))
    chroma = samples(_code_blocks(chroma, quantisation_table(CHROMINANCE, quality), rounding))
    if subsample:
        chroma = samples(_double(_double(chroma, -2), -1))[..., :height, :width]
    decoded = torch.cat([luma, chroma], dim=1) - offset
    return samples(torch.einsum("ij,njhw->nihw", levels.new_tensor(_TO_RGB), decoded))


def _code_blocks(
    plane: Tensor, table: tuple[tuple[int, ...], ...], rounding: Callable[[Tensor], Tensor]
) -> Tensor:
    """Transform 8 x 8 blocks, quantise, and transform back; edges are replicated and cropped."""
    height, width = plane.shape[-2:]
    padded = _replicate(_replicate(plane - 128, -height % 8, -2), -width % 8, -1)
    count, channels, rows, columns = padded.shape
    blocks = padded.reshape(count, channels, rows // 8, 8, columns // 8, 8)
    basis, steps = plane.new_tensor(_dct_basis()), plane.new_tensor(table)
    coefficients = torch.einsum("ux,ncaxby,vy->ncabuv", basis, blocks, basis)
    coefficients = rounding(coefficients / steps) * steps
    blocks = torch.einsum("ux,ncabuv,vy->ncaxby", basis, coefficients, basis)
    return blocks.reshape(count, channels, rows, columns)[..., :height, :width] + 128


@lru_cache(maxsize=1)
def _dct_basis() -> tuple[tuple[float, ...], ...]:
    """Return the orthonormal DCT-II matrix, equation A.3.3 of T.81 as a product of two."""
    return tuple(
        tuple(
            math.sqrt((1 if u == 0 else 2) / 8) * math.cos((2 * x + 1) * u * math.pi / 16)
            for x in range(8)
        )
        for u in range(8)
    )


def _replicate(plane: Tensor, amount: int, axis: int) -> Tensor:
    if amount == 0:
        return plane
    last = plane.narrow(axis, plane.shape[axis] - 1, 1)
    return torch.cat([plane, *[last] * amount], dim=axis)


def _halve(plane: Tensor) -> Tensor:
    """Average 2 x 2 pixels; an odd edge is replicated."""
    plane = _replicate(_replicate(plane, plane.shape[-2] % 2, -2), plane.shape[-1] % 2, -1)
    plane = (plane[..., ::2, :] + plane[..., 1::2, :]) / 2
    return (plane[..., ::2] + plane[..., 1::2]) / 2


def _double(plane: Tensor, axis: int) -> Tensor:
    """Double one axis with the triangle filter (3/4, 1/4) that libjpeg uses by default."""
    # Built from slices: the library's interpolation has no deterministic gradient on CUDA.
    size = plane.shape[axis]
    before = torch.cat([plane.narrow(axis, 0, 1), plane.narrow(axis, 0, size - 1)], dim=axis)
    after = torch.cat([plane.narrow(axis, 1, size - 1), plane.narrow(axis, size - 1, 1)], dim=axis)
    axis %= plane.ndim
    pairs = torch.stack([plane * 0.75 + before * 0.25, plane * 0.75 + after * 0.25], dim=axis + 1)
    return pairs.flatten(axis, axis + 1)
