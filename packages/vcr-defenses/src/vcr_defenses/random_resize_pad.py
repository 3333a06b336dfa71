"""A random resize and a random place on a black canvas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import interpolate, pad

from vcr_defenses.candidates import Candidates
from vcr_defenses.crop_resize import at_most
from vcr_defenses.draws import by_draw, draw_shape
from vcr_defenses.params.spatial import RandomResizePadParams
from vcr_defenses.pixel_range import clamp_straight_through

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.randomness import VideoRandom


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one frame ends up.

    Attributes:
        size: ``(height, width)`` after resizing.
        canvas: ``(height, width)`` after padding.
        offset: ``(top, left)`` of the resized frame on the canvas.
        mirrored: whether it is flipped.
    """

    size: tuple[int, int]
    canvas: tuple[int, int]
    offset: tuple[int, int]
    mirrored: bool


def place(planes: Tensor, where: Placement, interpolation: str) -> Tensor:
    """Return planes ``[n, p, H, W]`` on their canvas, zero around them."""
    if where.mirrored:
        planes = planes.flip(-1)
    if interpolation == "nearest":
        resized = interpolate(planes, where.size, mode="nearest-exact")
    else:
        resized = interpolate(planes, where.size, mode="bilinear")
    top, left = where.offset
    bottom = where.canvas[0] - top - where.size[0]
    right = where.canvas[1] - left - where.size[1]
    return pad(resized, (left, right, top, bottom))


class RandomResizePad(Candidates):
    """Resize to a random size, pad with zeros at a random place, resize back.

    Xie, Wang, Zhang, Ren, Yuille, ICLR 2018, section 3: a frame of 299 pixels becomes ``r ~
    U{310..330}`` pixels large and is placed on a canvas of 331 at offsets ``U{0..331 - r}``. Other
    frames are treated in proportion. ``flip``, ``interpolation = "nearest"`` and ``votes`` make
    the authors' entry to the NIPS 2017 contest.

    The gradient is exact. On CUDA the backward pass of the resizing adds in no fixed order, so
    gradients there are repeatable only up to the last bits.
    """

    stochastic = True

    def __init__(self, params: RandomResizePadParams | None = None) -> None:
        self.params = params or RandomResizePadParams()
        super().__init__(self.params.votes, self.params.merge)

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return the padded clips, by default at the size of the input.

        Args:
            clips: ``[B, V, T, C, H, W]``, float in [0, 1].
            random: one placement a video, clip or frame is drawn from it.
        """
        height, width = clips.shape[-2:]
        draws = random.uniform(*draw_shape(self.params.per, clips), 4).flatten(0, -2).cpu()
        planes = by_draw(clips, len(draws))
        placed = []
        for i, draw in enumerate(draws):
            where = self.placement(draw, height, width)
            frame = place(planes[i : i + 1], where, self.params.interpolation)
            if self.params.back:
                frame = interpolate(frame, (height, width), mode="bilinear")
            placed.append(frame)
        merged = torch.cat(placed)
        return clamp_straight_through(merged.view(*clips.shape[:-2], *merged.shape[-2:]))

    def surrogate(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return the clips, or the defended clips where they have another size."""
        return clips if self.params.back else self.apply(clips, random)

    def placement(self, draw: Tensor, height: int, width: int) -> Placement:
        """Return where a draw of 4 numbers in [0, 1) puts a frame: size, top, left, flip."""
        (rows, canvas_y), (columns, canvas_x) = (
            self._side(draw[0], side) for side in (height, width)
        )
        return Placement(
            size=(rows, columns),
            canvas=(canvas_y, canvas_x),
            offset=(
                int(at_most(draw[1], canvas_y - rows)),
                int(at_most(draw[2], canvas_x - columns)),
            ),
            mirrored=bool(draw[3] < self.params.flip),
        )

    def _side(self, fraction: Tensor, side: int) -> tuple[int, int]:
        """Return the size of one axis after resizing and after padding."""
        canvas = max(2, round(side * self.params.padded / self.params.base))
        least = min(max(1, round(side * self.params.smallest / self.params.base)), canvas - 1)
        return least + int(at_most(fraction, canvas - 1 - least)), canvas
