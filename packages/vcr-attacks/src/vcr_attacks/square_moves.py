"""Starts and proposals of the Square Attack on videos.

Andriushchenko, Croce, Flammarion, Hein, "Square Attack: a query-efficient black-box adversarial
attack via random search", ECCV 2020, algorithms 2 and 3, extended by an axis of time.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import torch

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.randomness import VideoRandom
    from vcr_core.threat import ThreatModel

    from vcr_attacks.params.query import Temporal
    from vcr_attacks.sign_loop import Ball

# Rows: last iteration out of 10 000 at which the share is divided by the second number.
_SCHEDULE = (
    (10, 1), (50, 2), (200, 4), (500, 8), (1000, 16),
    (2000, 32), (4000, 64), (6000, 128), (8000, 256),
)  # fmt: skip
_LAST_DIVISOR = 512
_REDRAWS = 10


def square_side(iteration: int, iterations: int, p_init: float, height: int, width: int) -> int:
    """Return the side of the square proposed at an iteration, between 1 and the shorter side.

    The share ``p`` of the frame that a square covers is halved at fixed points of the run; for
    other lengths than 10 000 the points are scaled.

    Example:
        >>> [square_side(i, 200, 0.8, 224, 224) for i in (0, 1, 2, 5, 199)]
        [200, 142, 100, 71, 9]
    """
    divisor = next(
        (d for last, d in _SCHEDULE if iteration * 10000 <= last * iterations), _LAST_DIVISOR
    )
    side = round(math.sqrt(p_init / divisor * height * width))
    return max(1, min(side, height, width))


class Moves(Protocol):
    """How candidates are made in one norm."""

    def start(self, random: VideoRandom) -> Tensor:
        """Return starting points ``[B, T, C, H, W]`` inside the ball."""
        ...

    def propose(self, points: Tensor, rows: Tensor, side: int, random: VideoRandom) -> Tensor:
        """Return candidates near ``points`` ``[b, T, C, H, W]``, a copy that may be overwritten."""
        ...


class Frames:
    """Which frames a proposal changes, and whether they share its signs.

    Args:
        mode: see ``SquareParams.temporal``.
        frames: frames of a video.
    """

    def __init__(self, mode: Temporal, frames: int) -> None:
        self.mode = mode
        self.frames = frames
        self.length = max(1, frames // 2) if mode == "window" else frames
        self.signs = frames if mode in ("fold", "mixed") else 1

    def first(self, rows: Tensor, random: VideoRandom) -> list[int]:
        """Return the first changed frame of each video."""
        if self.mode != "window":
            return [0] * len(rows)
        drawn: list[int] = random.integers(0, self.frames - self.length + 1, rows=rows).tolist()
        return drawn

    def apart(self, rows: Tensor, random: VideoRandom) -> list[bool]:
        """Return for each video whether every frame gets signs of its own this time."""
        if self.mode != "mixed":
            return [self.mode == "fold"] * len(rows)
        return [bool(coin) for coin in random.integers(0, 2, rows=rows).tolist()]


def _corners(size: int, side: int, rows: Tensor, random: VideoRandom) -> list[int]:
    """Return positions such that every pixel, the last one included, can be covered."""
    drawn: list[int] = random.integers(0, size - side + 1, rows=rows).tolist()
    return drawn


class VertexMoves:
    """L-infinity: every perturbed value sits at the lower or upper end of its interval."""

    def __init__(self, threat: ThreatModel, clean: Tensor, frames: Frames) -> None:
        self._low, self._high = threat.bounds(clean)
        self._clean = clean
        self._frames = frames

    def start(self, random: VideoRandom) -> Tensor:
        """Return vertical stripes: one sign per column and channel."""
        _, frames, channels, _, width = self._clean.shape
        groups = min(frames, self._frames.signs)
        signs = random.signs(groups, channels, 1, width).to(self._clean)
        return self._high.where(signs > 0, self._low)

    def propose(self, points: Tensor, rows: Tensor, side: int, random: VideoRandom) -> Tensor:
        """Return points with one square a video overwritten by new signs per channel.

        All redraws are made in advance, so that the stream does not depend on what was accepted.
        """
        height, width = points.shape[-2:]
        tops = _corners(height, side, rows, random)
        lefts = _corners(width, side, rows, random)
        firsts = self._frames.first(rows, random)
        apart = self._frames.apart(rows, random)
        channels = points.shape[2]
        draws = random.signs(_REDRAWS, self._frames.signs, channels, 1, 1, rows=rows).to(points)
        for i, row in enumerate(rows.tolist()):
            window = (
                slice(firsts[i], firsts[i] + self._frames.length),
                slice(None),
                slice(tops[i], tops[i] + side),
                slice(lefts[i], lefts[i] + side),
            )
            low, high = self._low[row][window], self._high[row][window]
            current = points[i][window]
            for redraw in range(_REDRAWS):
                signs = draws[i, redraw]
                new = high.where((signs if apart[i] else signs[:1]) > 0, low)
                if not torch.equal(new, current):
                    break
            current.copy_(new)
        return points


class EnergyMoves:
    """L2: norm is moved between squares, in the shape of a pair of opposite pyramids."""

    def __init__(self, threat: ThreatModel, clean: Tensor, frames: Frames, ball: Ball) -> None:
        self._radius = threat.radius(clean)
        self._clean = clean
        self._frames = frames
        self._ball = ball

    def start(self, random: VideoRandom) -> Tensor:
        """Return a grid of about 5 x 5 tiles, each with a sign of its own per channel."""
        batch, frames, channels, height, width = self._clean.shape
        side = max(1, min(height, width) // 5)
        down, across = -(-height // side), -(-width // side)
        groups = min(frames, self._frames.signs)
        signs = random.signs(groups, channels, down, across).to(self._clean)
        tile = pyramids(side).to(self._clean).repeat(down, across)[:height, :width]
        signs = signs.repeat_interleave(side, dim=-2).repeat_interleave(side, dim=-1)
        noise = (signs[..., :height, :width] * tile).expand_as(self._clean)
        size = noise.flatten(1).norm(dim=1)
        noise = noise * (self._radius / size).view(-1, 1, 1, 1, 1)
        return self._ball(self._clean + noise, torch.arange(batch, device=noise.device))

    def propose(self, points: Tensor, rows: Tensor, side: int, random: VideoRandom) -> Tensor:
        """Return points with one square a video rebuilt and another one emptied."""
        height, width = points.shape[-2:]
        channels = points.shape[2]
        places = [
            (_corners(height, side, rows, random), _corners(width, side, rows, random))
            for _ in range(2)
        ]
        firsts = self._frames.first(rows, random)
        apart = self._frames.apart(rows, random)
        signs = random.signs(self._frames.signs, channels, 1, 1, rows=rows).to(points)
        turned = random.integers(0, 2, rows=rows).tolist()
        noise = points - self._clean[rows]
        radii = self._radius.expand(len(self._clean))[rows]
        shape = pyramids(side).to(points)
        for i in range(len(rows)):
            block = noise[i, firsts[i] : firsts[i] + self._frames.length]
            unused = (radii[i].square() - noise[i].square().sum()).clamp_min(0)
            tile = shape.T if turned[i] else shape
            spots = [(tops[i], lefts[i]) for tops, lefts in places]
            pattern = (signs[i] if apart[i] else signs[i, :1]) * tile
            _rebuild(block, spots, side, pattern, unused, (2, 3) if apart[i] else (0, 2, 3))
        return self._ball(self._clean[rows] + noise, rows)


def _rebuild(
    noise: Tensor,
    spots: list[tuple[int, int]],
    side: int,
    pattern: Tensor,
    unused: Tensor,
    axes: tuple[int, ...],
) -> None:
    """Change noise ``[t, C, H, W]`` of one video in place, algorithm 3 of the paper.

    Args:
        noise: a view of the frames that change.
        spots: top and left of the square that gains norm and of the one that loses it.
        side: side of both.
        pattern: ``[t or 1, C, side, side]``, what is added to the first square.
        unused: squared norm that the ball still allows.
        axes: of a unit of energy, which is what shares one sign: a channel over all its frames, or
            a channel of one frame.
    """
    first, second = (noise[..., top : top + side, left : left + side] for top, left in spots)
    before = noise.square().sum(dim=axes, keepdim=True)
    mixed = _unit(pattern.expand_as(first), axes) + _unit(first, axes)
    first.zero_()
    second.zero_()
    freed = (before - noise.square().sum(dim=axes, keepdim=True)).clamp_min(0)
    available = (freed + unused / freed.numel()).sqrt()
    first.copy_(_unit(mixed, axes) * available)


def pyramids(side: int) -> Tensor:
    """Return ``[side, side]``: a pyramid on one half of a square and its negative on the other.

    Equation (2) of the paper and the text after it.
    """
    half = side // 2
    parts = [sign * _pyramid(side, columns) for sign, columns in ((1, half), (-1, side - half))]
    return torch.cat(parts, dim=1)


def _pyramid(rows: int, columns: int) -> Tensor:
    middle = rows // 2
    from_row = (torch.arange(rows) - middle).abs().unsqueeze(1)
    from_column = (torch.arange(columns) - columns // 2).abs().unsqueeze(0)
    height = middle - torch.maximum(from_row, from_column)
    terms = 1 / (middle + 1 - torch.arange(middle + 1, dtype=torch.float32)).square()
    return terms.cumsum(dim=0)[height.clamp_min(0)]


def _unit(block: Tensor, axes: tuple[int, ...]) -> Tensor:
    size = block.square().sum(dim=axes, keepdim=True).sqrt()
    return block / size.clamp_min(1e-12)
