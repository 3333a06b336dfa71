"""Colour themes of pictures and the distance between them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import torch
from torch.nn.functional import adaptive_avg_pool2d

if TYPE_CHECKING:
    from torch import Tensor

COLOURS: Final = 7
KEPT: Final = 3
"""Colours of a picture's palette, and how many of them, the most frequent ones, are its theme."""

_RADIUS: Final = 100.0
_ANGLE: Final = math.radians(30)
_SIDE: Final = 64
_DARK: Final = 0.138
_BLACK: Final = 0.05


def theme(frames: Tensor) -> Tensor:
    """Return the theme of one picture or of a video's frames together, ``[3, 3]`` RGB.

    Median cut (Heckbert, SIGGRAPH 1982): the box of colours with the largest number of pixels times
    longest side is cut at the median along that side, until there are seven; the means of the three
    boxes with most pixels are the theme, most frequent first. Pictures larger than 64 pixels a side
    are averaged down to that.

    Args:
        frames: ``[n, 3, H, W]`` in [0, 1].
    """
    height, width = (min(size, _SIDE) for size in frames.shape[-2:])
    if (height, width) != tuple(frames.shape[-2:]):
        frames = adaptive_avg_pool2d(frames, (height, width))
    boxes = [frames.movedim(1, -1).reshape(-1, 3)]
    while len(boxes) < COLOURS:
        worth = [len(box) * float(_sides(box).max()) for box in boxes]
        largest = max(range(len(boxes)), key=worth.__getitem__)
        if worth[largest] == 0:
            break  # fewer colours than asked for
        boxes[largest : largest + 1] = _halves(boxes[largest])
    boxes.sort(key=len, reverse=True)
    means = [box.mean(dim=0) for box in boxes[:KEPT]]
    return torch.stack([*means, *[means[-1]] * (KEPT - len(means))])


def cone_points(colours: Tensor) -> Tensor:
    """Return places ``[..., 3]`` of RGB colours ``[..., 3]`` in the HSV cone.

    With R = 100, height R cos 30 degrees and radius R sin 30 degrees, the point of the cone is
    black; the middle of its base, the origin, is white.
    """
    hue, saturation, value = hsv(colours)
    height, radius = _RADIUS * math.cos(_ANGLE), _RADIUS * math.sin(_ANGLE)
    across = radius * value * saturation
    return torch.stack([across * hue.cos(), across * hue.sin(), height * (1 - value)], dim=-1)


def distances(one: Tensor, others: Tensor) -> Tensor:
    """Return distances ``[N]`` of a theme ``[3, 3]`` to themes ``[N, 3, 3]``.

    The sum over the colours, in order, of the distances of their places in the cone.
    """
    apart: Tensor = (cone_points(others) - cone_points(one)).norm(dim=-1)
    return apart.sum(dim=-1)


def hsv(colours: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return hue in radians, saturation and value of RGB colours ``[..., 3]`` in [0, 1]."""
    red, green, blue = colours.unbind(-1)
    value, least = colours.amax(-1), colours.amin(-1)
    spread = value - least
    safe = spread.where(spread > 0, torch.ones_like(spread))
    sector = torch.where(
        value == red,
        ((green - blue) / safe) % 6,
        torch.where(value == green, (blue - red) / safe + 2, (red - green) / safe + 4),
    )
    hue = sector.where(spread > 0, torch.zeros_like(sector)) * (math.pi / 3)
    saturation = spread / value.where(value > 0, torch.ones_like(value))
    return hue, saturation, value


def is_dull(picture: Tensor) -> bool:
    """Return whether a picture ``[3, H, W]`` is dark (mean V < 0.138) or has a black border."""
    value = picture.amax(dim=0)
    edges = (value[0], value[-1], value[:, 0], value[:, -1])
    return bool(value.mean() < _DARK) or any(bool(edge.max() < _BLACK) for edge in edges)


def _sides(box: Tensor) -> Tensor:
    return box.amax(dim=0) - box.amin(dim=0)


def _halves(box: Tensor) -> list[Tensor]:
    """Cut a box of colours ``[n, 3]`` along its longest side, at the median; none is left empty."""
    axis = int(_sides(box).argmax())
    values = box[:, axis]
    low = values <= values.median()
    if bool(low.all()):
        low = values < values.max()
    return [box[low], box[~low]]
