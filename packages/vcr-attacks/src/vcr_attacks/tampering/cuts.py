"""Operators that show the video's own frames in another order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vcr_attacks.params.tampering import CutParams, RepeatParams, SpeedParams, TamperParams
from vcr_attacks.tampering.base import Changed, Tamper, reordered
from vcr_attacks.tampering.segment import Segment

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from vcr_core.protocols import TransformContext, WholeVideo


class Drop(Tamper[CutParams]):
    """The segment's frames are left out (MVTamperBench, "dropping")."""

    type = "drop"

    def __init__(self, params: CutParams | None = None) -> None:
        self.params = params or CutParams()

    def change(self, video: WholeVideo, segment: Segment, ctx: TransformContext) -> Changed:
        """Return the video without the segment; what is recorded is the cut."""
        index = np.delete(np.arange(len(video.frames)), slice(segment.start, segment.end))
        return reordered(video, index, Segment(segment.start, segment.start), self.params)


class Repeat(Tamper[RepeatParams]):
    """The segment is shown again right after itself (MVTamperBench, "repetition")."""

    type = "repeat"

    def __init__(self, params: RepeatParams | None = None) -> None:
        self.params = params or RepeatParams()

    def change(self, video: WholeVideo, segment: Segment, ctx: TransformContext) -> Changed:
        """Return the video with the segment shown ``1 + times`` times."""
        again = np.tile(np.arange(segment.start, segment.end), self.params.times)
        index = _spliced(video, segment.end, segment.end, again)
        return reordered(video, index, Segment(segment.end, segment.end + len(again)), self.params)


class Freeze(Tamper[TamperParams]):
    """The first frame of the segment is held."""

    type = "freeze"

    def __init__(self, params: TamperParams | None = None) -> None:
        self.params = params or TamperParams()

    def change(self, video: WholeVideo, segment: Segment, ctx: TransformContext) -> Changed:
        """Return the video with a still segment."""
        still = np.full(len(segment), segment.start)
        return reordered(video, _spliced(video, segment.start, segment.end, still), segment)


class Reverse(Tamper[TamperParams]):
    """The segment is played backwards."""

    type = "reverse"

    def __init__(self, params: TamperParams | None = None) -> None:
        self.params = params or TamperParams()

    def change(self, video: WholeVideo, segment: Segment, ctx: TransformContext) -> Changed:
        """Return the video with the segment reversed."""
        back = np.arange(segment.start, segment.end)[::-1]
        return reordered(video, _spliced(video, segment.start, segment.end, back), segment)


class Shuffle(Tamper[TamperParams]):
    """The segment's frames in a random order, which is not the old one."""

    type = "shuffle"

    def __init__(self, params: TamperParams | None = None) -> None:
        self.params = params or TamperParams()

    def change(self, video: WholeVideo, segment: Segment, ctx: TransformContext) -> Changed:
        """Return the video with the segment shuffled; one frame alone stays where it is."""
        count = len(segment)
        order = ctx.random.permutation(count)[0].numpy()
        while count > 1 and (order == np.arange(count)).all():
            order = ctx.random.permutation(count)[0].numpy()
        index = _spliced(video, segment.start, segment.end, segment.start + order)
        return reordered(video, index, segment)


class Speed(Tamper[SpeedParams]):
    """The segment runs at twice or at half its speed."""

    type = "speed"

    def __init__(self, params: SpeedParams | None = None) -> None:
        self.params = params or SpeedParams()

    def change(self, video: WholeVideo, segment: Segment, ctx: TransformContext) -> Changed:
        """Return the video with every second frame of the segment, or every frame twice."""
        frames = np.arange(segment.start, segment.end)
        new = frames[::2] if self.params.factor == "2" else frames.repeat(2)
        index = _spliced(video, segment.start, segment.end, new)
        changed = Segment(segment.start, segment.start + len(new))
        return reordered(video, index, changed, self.params, factor=float(self.params.factor))


def _spliced(
    video: WholeVideo, start: int, end: int, middle: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return all frames with those from ``start`` to ``end - 1`` replaced by others."""
    every = np.arange(len(video.frames))
    return np.concatenate([every[:start], middle, every[end:]])
