"""Noise that moves: one frame of noise, warped for every frame of a video."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

import torch
import torch.nn.functional as F

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.randomness import VideoRandom

    from vcr_attacks.params.query import Motion

Matrix: TypeAlias = "Tensor"
"""``[n, 2, 3]``, from positions in [-1, 1] of the result to positions in the noise frame."""

PARAMETERS: dict[Motion, int] = {
    "translation": 2, "dilation": 1, "rigid": 3, "translation-dilation": 3, "similarity": 4,
    "affine": 6,
}  # fmt: skip


class NoiseSource(Protocol):
    """Draws noise of the shape of videos."""

    def draw(self, rows: Tensor) -> Tensor:
        """Return ``[b, T, C, H, W]`` for videos ``rows``."""
        ...


def matrices(motion: Motion, drawn: Tensor) -> Matrix:
    """Return the maps of drawn motion parameters ``[n, d]``, Geo-TRAP, section 3.2.

    Example:
        >>> matrices("translation", torch.tensor([[0.5, -1.0]])).tolist()
        [[[1.0, 0.0, 0.5], [0.0, 1.0, -1.0]]]
    """
    if motion == "affine":
        return drawn.view(-1, 2, 3)
    one, zero = torch.ones_like(drawn[:, 0]), torch.zeros_like(drawn[:, 0])
    turn, scale, across, down = zero, one, zero, zero
    if motion in ("rigid", "similarity"):
        turn, drawn = drawn[:, 0], drawn[:, 1:]
    if motion in ("dilation", "translation-dilation", "similarity"):
        scale, drawn = drawn[:, 0], drawn[:, 1:]
    if motion != "dilation":
        across, down = drawn[:, 0], drawn[:, 1]
    cos, sin = scale * turn.cos(), scale * turn.sin()
    flat = torch.stack([cos, -sin, across, sin, cos, down], dim=1)
    return flat.view(-1, 2, 3)


def warped(frames: Tensor, maps: Matrix) -> Tensor:
    """Return frames ``[n, C, H, W]`` looked up bilinearly where the maps point; zero outside."""
    grid = F.affine_grid(maps, list(frames.shape), align_corners=True)
    return F.grid_sample(frames, grid, mode="bilinear", padding_mode="zeros", align_corners=True)


class WarpedNoise:
    """One Gaussian frame a video, warped by a random map of its own for every frame.

    Args:
        video: ``[B, T, C, H, W]``, for sizes.
        random: one generator per video.
        motion: which maps are drawn.
    """

    def __init__(self, video: Tensor, random: VideoRandom, motion: Motion) -> None:
        self._shape = tuple(video.shape[1:])
        self._random = random
        self._motion: Motion = motion
        self._like = video

    def draw(self, rows: Tensor) -> Tensor:
        """Return ``[b, T, C, H, W]`` for videos ``rows``."""
        frames, *frame = self._shape
        noise = self._random.normal(*frame, rows=rows).to(self._like)
        drawn = self._random.normal(frames, PARAMETERS[self._motion], rows=rows).to(self._like)
        maps = matrices(self._motion, drawn.flatten(0, 1))
        copies = noise.unsqueeze(1).expand(-1, frames, -1, -1, -1).flatten(0, 1)
        return warped(copies, maps).view(len(rows), frames, *frame)
