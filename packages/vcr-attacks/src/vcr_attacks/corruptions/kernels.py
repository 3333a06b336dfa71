"""Filters of planes ``[N, H, W]``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import conv2d, pad

if TYPE_CHECKING:
    from torch import Tensor


def gaussian_rows(size: int, sigma: float, like: Tensor) -> Tensor:
    """Return the matrix ``[size, size]`` that blurs a line of pixels, borders mirrored.

    A matrix has no trouble with kernels that are larger than the frame.
    """
    reach = max(1, math.ceil(4 * sigma))
    taps = torch.exp(-(torch.arange(-reach, reach + 1.0, device=like.device) ** 2) / (2 * sigma**2))
    taps /= taps.sum()
    index = torch.arange(size, device=like.device)[:, None] + torch.arange(
        -reach, reach + 1, device=like.device
    )
    index = index % (2 * size)
    index = torch.where(index >= size, 2 * size - 1 - index, index)
    matrix = torch.zeros(size, size, device=like.device)
    return matrix.scatter_add_(1, index, taps.expand(size, -1).contiguous()).to(like.dtype)


def gaussian(planes: Tensor, sigma: float) -> Tensor:
    """Return planes ``[..., H, W]`` blurred."""
    if sigma <= 0:
        return planes.clone()
    rows = gaussian_rows(planes.shape[-2], sigma, planes)
    columns = gaussian_rows(planes.shape[-1], sigma, planes)
    return rows @ planes @ columns.T


def filtered(planes: Tensor, kernel: Tensor) -> Tensor:
    """Return planes ``[..., H, W]`` correlated with an odd kernel ``[k, k]``, borders repeated."""
    half = kernel.shape[-1] // 2
    flat = planes.reshape(-1, 1, *planes.shape[-2:])
    around = pad(flat, [half] * 4, mode="replicate")
    return conv2d(around, kernel.to(planes)[None, None]).view_as(planes)


def disc(radius: float, sigma: float, like: Tensor) -> Tensor:
    """Return a disc of a radius, softened by a Gaussian, that sums to 1."""
    half = max(1, math.ceil(radius))
    line = torch.arange(-half, half + 1.0, device=like.device)
    # One pixel of soft edge, so that radii between whole pixels differ.
    kernel = (radius + 0.5 - torch.hypot(line[:, None], line)).clamp(0, 1)
    kernel = gaussian(kernel, sigma)
    return (kernel / kernel.sum()).to(like.dtype)


def line_taps(radius: float, sigma: float) -> list[tuple[float, float]]:
    """Return distances along a line and their weights: half a Gaussian of ``2 radius + 1`` taps."""
    count = max(1, round(2 * radius + 1))
    weights = [math.exp(-(i**2) / (2 * max(sigma, 1e-3) ** 2)) for i in range(count)]
    total = sum(weights)
    return [(float(i), weight / total) for i, weight in enumerate(weights)]


def moved(planes: Tensor, rows: int, columns: int) -> Tensor:
    """Return planes ``[..., H, W]`` shifted down and right, borders repeated."""
    height, width = planes.shape[-2:]
    y = (torch.arange(height, device=planes.device) - rows).clamp(0, height - 1)
    x = (torch.arange(width, device=planes.device) - columns).clamp(0, width - 1)
    return planes[..., y, :][..., x]
