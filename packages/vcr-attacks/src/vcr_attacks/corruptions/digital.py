"""Pixelation, JPEG, elastic deformation, translation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn.functional import grid_sample, interpolate

from vcr_attacks.corruptions.base import FrameCorruption, in_pixels
from vcr_attacks.corruptions.kernels import gaussian, moved
from vcr_attacks.jpeg_frames import jpeg_frames

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.randomness import VideoRandom

PIXELATE = (0.6, 0.5, 0.4, 0.3, 0.25)
JPEG = (25, 18, 15, 10, 7)
TRANSLATE = (1, 2, 4, 8, 16)
ELASTIC = (
    (488.0, 170.8, 24.4),
    (488.0, 19.52, 48.8),
    (12.2, 2.44, 4.88),
    (17.08, 2.44, 4.88),
    (29.28, 2.44, 4.88),
)
"""Amplitude, smoothness and affine jitter in pixels of a frame of 244."""

_ELASTIC_SIDE = 244


class Pixelate(FrameCorruption):
    """Shrunk to a part ``c`` by box averaging and enlarged again without smoothing."""

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        height, width = video.shape[-2:]
        rows, columns = (
            box_rows(side, max(1, int(side * PIXELATE[level]))).to(video)
            for side in (height, width)
        )
        shrunk = (rows @ video @ columns.T).flatten(0, 1)
        return interpolate(shrunk, (height, width), mode="nearest-exact").view_as(video)


def box_rows(size: int, small: int) -> Tensor:
    """Return the matrix ``[small, size]`` of means over equal stretches of a line of pixels.

    Pixels at the borders of a stretch count with the part that lies inside.
    """
    edges = torch.arange(small + 1, dtype=torch.float64) * size / small
    pixels = torch.arange(size, dtype=torch.float64)
    inside = torch.minimum(edges[1:, None], pixels + 1) - torch.maximum(edges[:-1, None], pixels)
    return inside.clamp_min(0) * small / size


class JpegCompression(FrameCorruption):
    """JPEG of quality ``c``, frame by frame."""

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        levels = (video.flatten(0, 1) * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()
        decoded = torch.from_numpy(jpeg_frames(levels, JPEG[level]))
        pixels = decoded.permute(0, 3, 1, 2).to(video) / 255
        return pixels.view_as(video)


class Translate(FrameCorruption):
    """Shifted by ``c`` pixels along a diagonal that is drawn; borders repeat.

    In small frames each severity is at least one pixel more than the one before.
    """

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        pixels = max(level + 1, round(in_pixels(TRANSLATE[level], video)))
        signs = random.signs(2).long().tolist()
        return torch.stack(
            [moved(one, pixels * y, pixels * x) for one, (y, x) in zip(video, signs, strict=True)]
        )


class Elastic(FrameCorruption):
    """An affine jitter of three corners, then a smooth random displacement of every pixel.

    Simard, Steinkraus, Platt, "Best practices for convolutional neural networks applied to visual
    document analysis", ICDAR 2003.
    """

    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """See :meth:`Corruption.corrupt`."""
        height, width = video.shape[-2:]
        scale = min(height, width) / _ELASTIC_SIDE
        amplitude, smoothness, jitter = (value * scale for value in ELASTIC[level])
        noise = random.uniform(2, height, width, low=-1, high=1).to(video)
        field = gaussian(noise, smoothness) * amplitude
        # Three points around the centre move; they fix the affine map.
        half = min(height, width) / 3
        anchors = video.new_tensor([[half, half], [half, -half], [-half, -half]])
        by = random.uniform(3, 2, low=-jitter, high=jitter).to(video)
        ones = torch.ones(3, 1, device=video.device, dtype=video.dtype)
        maps = torch.linalg.solve(torch.cat([anchors, ones], dim=1), anchors + by)
        y = torch.arange(height, device=video.device, dtype=video.dtype) - (height - 1) / 2
        x = torch.arange(width, device=video.device, dtype=video.dtype) - (width - 1) / 2
        points = torch.stack(
            [
                x.expand(height, width),
                y[:, None].expand(height, width),
                torch.ones_like(field[0, 0]),
            ],
            dim=-1,
        )
        moved_to = torch.einsum("hwi,bij->bhwj", points, maps) + field.permute(0, 2, 3, 1)
        limits = video.new_tensor([max(width - 1, 1) / 2, max(height - 1, 1) / 2])
        grid = (moved_to / limits).repeat_interleave(video.shape[1], dim=0)
        out = grid_sample(
            video.flatten(0, 1),
            grid,
            mode="bilinear",
            padding_mode="reflection",
            align_corners=True,
        )
        return out.view_as(video)
