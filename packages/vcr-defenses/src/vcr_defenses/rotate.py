"""Rotation of all frames by a random angle."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import affine_grid, grid_sample
from vcr_core.protocols import InputDefense

from vcr_defenses.draws import by_draw, draw_shape
from vcr_defenses.params.spatial import RotateParams
from vcr_defenses.pixel_range import clamp_straight_through

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.randomness import VideoRandom


def rotate(planes: Tensor, degrees: Tensor, pad: str = "zeros") -> Tensor:
    """Return planes turned about the centre of the frame, bilinear.

    The matrix maps output to input positions in coordinates that run from -1 to 1 along *both*
    axes, so the off-diagonal terms carry the aspect ratio; without it frames that are not square
    are sheared.

    Args:
        planes: ``[n, p, H, W]``.
        degrees: ``[n]``; positive angles turn the picture anticlockwise.
        pad: ``zeros`` or ``reflect`` (mirrored about the frame's edge).
    """
    height, width = planes.shape[-2:]
    angle = degrees.to(planes.dtype) * (math.pi / 180)
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    matrix = torch.stack(
        [
            torch.stack([cos, -sin * (height / width), zero], dim=-1),
            torch.stack([sin * (width / height), cos, zero], dim=-1),
        ],
        dim=-2,
    )
    grid = affine_grid(matrix, list(planes.shape), align_corners=False)
    mode = "reflection" if pad == "reflect" else "zeros"
    return grid_sample(planes, grid, mode="bilinear", padding_mode=mode, align_corners=False)


class Rotate(InputDefense):
    """Rotation by an angle uniform in ±``max_degrees``, one draw a video by default.

    The gradient is exact. On CUDA the backward pass of the bilinear sampling adds in no fixed
    order, so gradients there are repeatable only up to the last bits.
    """

    def __init__(self, params: RotateParams | None = None) -> None:
        self.params = params or RotateParams()

    @property
    def stochastic(self) -> bool:
        """Whether these parameters make the defense random."""
        return self.params.max_degrees > 0

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return rotated clips of the same size.

        Args:
            clips: ``[B, V, T, C, H, W]``, float in [0, 1].
            random: one angle a video, clip or frame is drawn from it.
        """
        most = self.params.max_degrees
        if most == 0:
            return clips.clone()
        degrees = random.uniform(*draw_shape(self.params.per, clips), low=-most, high=most)
        degrees = degrees.flatten().to(clips.device)
        turned = rotate(by_draw(clips, len(degrees)), degrees, self.params.pad)
        return clamp_straight_through(turned.view_as(clips))
