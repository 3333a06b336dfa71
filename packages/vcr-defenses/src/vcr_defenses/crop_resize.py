"""A random crop of the video, resized to the size of the frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn.functional import interpolate

from vcr_defenses.candidates import Candidates
from vcr_defenses.draws import by_draw, draw_shape
from vcr_defenses.params.spatial import CropResizeParams
from vcr_defenses.pixel_range import clamp_straight_through

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.randomness import VideoRandom


def at_most(fraction: Tensor, most: Tensor | int) -> Tensor:
    """Return integers 0 to ``most`` for uniform numbers in [0, 1), each equally likely."""
    return (fraction.double() * (most + 1)).floor().long()


class CropResize(Candidates):
    """A window at a random place, resized bilinearly to the whole frame.

    Guo, Rana, Cisse, van der Maaten, ICLR 2018. By default the cut is the VCR-Bench code's:
    ``c ~ U{2..20}`` pixels go in all, ``U{0..c}`` of them at the top and ``U{0..c}`` on the left.
    ``crop_frac`` takes a window of a fixed part of the frame instead, as Guo et al. do.

    The gradient is exact. On CUDA the backward pass of the resizing adds in no fixed order, so
    gradients there are repeatable only up to the last bits.
    """

    def __init__(self, params: CropResizeParams | None = None) -> None:
        self.params = params or CropResizeParams()
        super().__init__(self.params.votes, self.params.merge)

    @property
    def stochastic(self) -> bool:
        """Whether these parameters make the defense random."""
        fraction = self.params.crop_frac
        return self.params.crop_px[1] > 0 if fraction is None else fraction < 1

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return the enlarged windows; values are convex combinations of those of the clips.

        Args:
            clips: ``[B, V, T, C, H, W]``, float in [0, 1].
            random: one window a video, clip or frame is drawn from it.
        """
        height, width = clips.shape[-2:]
        draw = random.uniform(*draw_shape(self.params.per, clips), 3).flatten(0, -2).cpu()
        cut_y, cut_x = self._cut(draw[:, 0], height, width)
        tops, lefts = at_most(draw[:, 1], cut_y).tolist(), at_most(draw[:, 2], cut_x).tolist()
        planes = by_draw(clips, len(draw))
        resized = []
        for i, (y, x) in enumerate(zip(cut_y.tolist(), cut_x.tolist(), strict=True)):
            top, left = tops[i], lefts[i]
            window = planes[i : i + 1, :, top : top + height - y, left : left + width - x]
            resized.append(
                window
                if (y, x) == (0, 0)
                else interpolate(window, (height, width), mode="bilinear")
            )
        return clamp_straight_through(torch.cat(resized).view_as(clips))

    def _cut(self, fraction: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
        """Return how many rows and columns each draw loses."""
        if self.params.crop_frac is not None:
            kept = (max(1, round(side * self.params.crop_frac)) for side in (height, width))
            rows, columns = (
                torch.full(fraction.shape, side - k)
                for side, k in zip((height, width), kept, strict=True)
            )
            return rows, columns
        least, most = (min(px, min(height, width) // 4) for px in self.params.crop_px)
        cut = least + at_most(fraction, most - least)
        return cut, cut
