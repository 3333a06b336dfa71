"""Operators that change the pixels of the segment's frames."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn.functional import conv2d, interpolate, pad

from vcr_attacks.jpeg_frames import jpeg_frames
from vcr_attacks.params.tampering import (
    CompressParams,
    LocalMaskParams,
    MaskParams,
    NoiseParams,
    SoftenParams,
    SubstituteParams,
    TurnParams,
)
from vcr_attacks.tampering.base import Changed, Tamper, inside, painted

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from vcr_core.protocols import TransformContext, WholeVideo

    from vcr_attacks.tampering.segment import Segment

    Frames = NDArray[np.uint8]


class Mask(Tamper[MaskParams]):
    """Black frames (MVTamperBench, "masking": the published code covers the whole frame)."""

    type = "mask"

    def __init__(self, params: MaskParams | None = None) -> None:
        self.params = params or MaskParams()

    def change(self, video: WholeVideo, segment: Segment, ctx: TransformContext) -> Changed:
        """Return the video with frames of one grey level."""
        grey = np.full_like(inside(video, segment), round(255 * self.params.value))
        return painted(video, segment, grey, invented=True)


class LocalMask(Tamper[LocalMaskParams]):
    """A rectangle of one grey level that stays where it is."""

    type = "local-mask"

    def __init__(self, params: LocalMaskParams | None = None) -> None:
        self.params = params or LocalMaskParams()

    def change(self, video: WholeVideo, segment: Segment, ctx: TransformContext) -> Changed:
        """Return the video with a rectangle of the frame's shape covered."""
        params, frames = self.params, inside(video, segment).copy()
        height, width = frames.shape[1:3]
        side = math.sqrt(params.area)
        rows, columns = round(side * height), round(side * width)
        top, left = (height - rows) // 2, (width - columns) // 2
        if params.position == "random":
            top = int(ctx.random.integers(0, height - rows + 1))
            left = int(ctx.random.integers(0, width - columns + 1))
        frames[:, top : top + rows, left : left + columns] = round(255 * params.value)
        return painted(video, segment, frames, rectangle=[top, left, rows, columns])


class Rotate(Tamper[TurnParams]):
    """Frames turned (MVTamperBench, "rotation": 180 degrees)."""

    type = "rotate"

    def __init__(self, params: TurnParams | None = None) -> None:
        self.params = params or TurnParams()

    def change(self, video: WholeVideo, segment: Segment, ctx: TransformContext) -> Changed:
        """Return the video with the segment's frames turned."""
        frames = inside(video, segment)
        turned = np.rot90(frames, int(self.params.angle) // 90, axes=(1, 2))
        return painted(video, segment, resized(turned, frames.shape[1], frames.shape[2]))


class Substitute(Tamper[SubstituteParams]):
    """Consecutive frames of another video (MVTamperBench, "substitution").

    Donors are resized to the frame's size, which the published code does not do: its writer drops
    frames of another size without a word.
    """

    type = "substitute"

    def __init__(self, params: SubstituteParams | None = None) -> None:
        self.params = params or SubstituteParams()

    def change(self, video: WholeVideo, segment: Segment, ctx: TransformContext) -> Changed:
        """Return the video with a stretch of the donor; a short donor runs in a loop."""
        donor = ctx.donor(other_label=self.params.donor == "other-class")
        room = max(len(donor.frames) - len(segment), 0)
        start = int(ctx.random.integers(0, room + 1))
        index = (start + np.arange(len(segment))) % len(donor.frames)
        height, width = video.frames.shape[1:3]
        frames = resized(donor.frames[index], height, width)
        return painted(video, segment, frames, invented=True, donor=donor.id, donor_start=start)


class Noise(Tamper[NoiseParams]):
    """Gaussian noise, drawn for every pixel of every frame."""

    type = "noise"

    def __init__(self, params: NoiseParams | None = None) -> None:
        self.params = params or NoiseParams()

    def change(self, video: WholeVideo, segment: Segment, ctx: TransformContext) -> Changed:
        """Return the video with a noisy segment."""
        frames = inside(video, segment)
        noise = ctx.random.normal(*frames.shape, std=self.params.sigma)[0].numpy()
        return painted(video, segment, _levels(frames + noise))


class Blur(Tamper[SoftenParams]):
    """Gaussian blur, borders mirrored."""

    type = "blur"

    def __init__(self, params: SoftenParams | None = None) -> None:
        self.params = params or SoftenParams()

    def change(self, video: WholeVideo, segment: Segment, ctx: TransformContext) -> Changed:
        """Return the video with a blurred segment."""
        frames, sigma = inside(video, segment), self.params.sigma
        if sigma == 0:
            return painted(video, segment, frames)
        planes = torch.from_numpy(frames).permute(0, 3, 1, 2).flatten(0, 1)[:, None].float()
        radius = min(math.ceil(3 * sigma), *(side - 1 for side in planes.shape[-2:]))
        taps = torch.exp(-(torch.arange(-radius, radius + 1.0) ** 2) / (2 * sigma**2))
        taps /= taps.sum()
        planes = conv2d(pad(planes, (0, 0, radius, radius), mode="reflect"), taps.view(1, 1, -1, 1))
        planes = conv2d(pad(planes, (radius, radius, 0, 0), mode="reflect"), taps.view(1, 1, 1, -1))
        soft = planes.view(len(frames), 3, *planes.shape[-2:]).permute(0, 2, 3, 1).numpy()
        return painted(video, segment, _levels(soft))


class Jpeg(Tamper[CompressParams]):
    """JPEG compression of every frame."""

    type = "jpeg"

    def __init__(self, params: CompressParams | None = None) -> None:
        self.params = params or CompressParams()

    def change(self, video: WholeVideo, segment: Segment, ctx: TransformContext) -> Changed:
        """Return the video with a compressed segment."""
        frames = jpeg_frames(inside(video, segment), self.params.quality)
        return painted(video, segment, frames)


def resized(frames: Frames, height: int, width: int) -> Frames:
    """Return frames ``[n, H', W', 3]`` at another size, bilinear; the same size is left alone."""
    if frames.shape[1:3] == (height, width):
        return np.ascontiguousarray(frames)
    planes = torch.from_numpy(np.ascontiguousarray(frames)).permute(0, 3, 1, 2).float()
    scaled = interpolate(planes, (height, width), mode="bilinear", antialias=True)
    return _levels(scaled.permute(0, 2, 3, 1).numpy())


def _levels(values: NDArray[np.floating]) -> Frames:
    levels: Frames = np.rint(values.clip(0, 255)).astype(np.uint8)
    return levels
