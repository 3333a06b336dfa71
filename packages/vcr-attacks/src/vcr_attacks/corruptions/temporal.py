"""Order, rate and duration of frames.

Yi et al., "Benchmarking the robustness of spatial-temporal models against corruptions", NeurIPS
2021 (temporal motion blur, frame rate); Schiappa et al., "A large-scale robustness analysis of
video action recognition models", CVPR 2023 (the others).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from vcr_core.errors import IncompatibleComponents

from vcr_attacks.corruptions.source import (
    SeverityCorruption,
    SourceCorruption,
    chosen,
    repainted,
)
from vcr_attacks.params.corruptions import TemporalParams

if TYPE_CHECKING:
    from vcr_core.protocols import Transformed, WholeVideo
    from vcr_core.randomness import VideoRandom

MOTION_BLUR = {"mini-kinetics-c": (3, 5, 7, 9, 11), "mini-ssv2-c": (1, 2, 3, 4, 6)}
FRAME_RATE = {"mini-kinetics-c": (20, 16, 12, 9, 6), "mini-ssv2-c": (10, 8, 6, 4, 2)}
SAMPLING = (2, 4, 8, 16, 32)
JUMBLE = (32, 16, 8, 4, 2)
BOX_JUMBLE = (4, 9, 16, 25, 36)
FREEZE = (0.4, 0.2, 0.1, 0.05, 0.0)


class MotionBlurTemporal(SourceCorruption[TemporalParams]):
    """The mean of the ``2c`` frames from ``i - c`` to ``i + c - 1``.

    The published code leaves out ``c`` frames at both ends; here the first and the last frame
    repeat, so that the length stays.
    """

    type = "motion-blur-temporal"

    def __init__(self, params: TemporalParams | None = None) -> None:
        self.params = params or TemporalParams()

    def change(self, video: WholeVideo, level: int, random: VideoRandom) -> Transformed:
        """Return the blurred video."""
        reach = MOTION_BLUR[self.params.table][level]
        frames, last = video.frames, len(video.frames) - 1
        # A running sum of whole numbers is exact, so frames far apart do not drift.
        total = np.zeros(frames.shape[1:], np.int32)
        for offset in range(-reach, reach):
            total += frames[min(max(offset, 0), last)]
        blurred = np.empty_like(frames)
        for i in range(len(frames)):
            blurred[i] = (total + reach) // (2 * reach)
            total += frames[min(i + reach, last)]
            total -= frames[max(i - reach, 0)]
        return repainted(blurred, reach=reach)


class FrameRate(SourceCorruption[TemporalParams]):
    """Shown at ``c`` frames a second: the nearest frames of that grid, each held until the next.

    The number of frames stays, as after a player has repeated them. A video of ``c`` frames a
    second or fewer is left as it is.
    """

    type = "frame-rate"

    def __init__(self, params: TemporalParams | None = None) -> None:
        self.params = params or TemporalParams()

    def change(self, video: WholeVideo, level: int, random: VideoRandom) -> Transformed:
        """Return the video with repeated frames.

        Raises:
            IncompatibleComponents: if the video's frame rate is not known.
        """
        rate = FRAME_RATE[self.params.table][level]
        if video.fps is None:
            raise IncompatibleComponents(
                f"attack 'frame-rate': the frame rate of {video.id} is not known; use a container "
                "that states it, such as MP4 or Matroska"
            )
        count = len(video.frames)
        if video.fps <= rate:
            return chosen(video, range(count), rate=rate)
        ratio = Fraction(rate) / video.fps
        held = [math.floor(math.floor(i * ratio) / ratio + Fraction(1, 2)) for i in range(count)]
        return chosen(video, [min(i, count - 1) for i in held], rate=rate)


class FrameSampling(SeverityCorruption):
    """Every ``s``-th frame, as if time ran faster; the video gets shorter."""

    type = "frame-sampling"

    def change(self, video: WholeVideo, level: int, random: VideoRandom) -> Transformed:
        """Return the shorter video."""
        return chosen(video, range(0, len(video.frames), SAMPLING[level]), step=SAMPLING[level])


class ReverseSampling(SeverityCorruption):
    """Every ``s``-th frame, backwards."""

    type = "reverse-sampling"

    def change(self, video: WholeVideo, level: int, random: VideoRandom) -> Transformed:
        """Return the shorter video, reversed."""
        step = SAMPLING[level]
        return chosen(video, range(0, len(video.frames), step)[::-1], step=step)


class Jumble(SeverityCorruption):
    """Frames shuffled inside of consecutive segments of 32, 16, 8, 4, 2 frames.

    The published severities go from long segments to short ones, that is from much disorder to
    little.
    """

    type = "jumble"

    def change(self, video: WholeVideo, level: int, random: VideoRandom) -> Transformed:
        """Return the video in another order."""
        count, length = len(video.frames), JUMBLE[level]
        order: list[int] = []
        for start in range(0, count, length):
            inside = min(length, count - start)
            order += (start + random.permutation(inside)[0]).tolist()
        return chosen(video, order, segment=length)


class BoxJumble(SeverityCorruption):
    """Consecutive segments of 4, 9, 16, 25, 36 frames in a random order, each left as it is."""

    type = "box-jumble"

    def change(self, video: WholeVideo, level: int, random: VideoRandom) -> Transformed:
        """Return the video in another order."""
        count, length = len(video.frames), BOX_JUMBLE[level]
        starts = range(0, count, length)
        order: list[int] = []
        for box in random.permutation(len(starts))[0].tolist():
            order += range(starts[box], min(starts[box] + length, count))
        return chosen(video, order, segment=length)


class FrameFreeze(SeverityCorruption):
    """A random 40, 20, 10, 5 % of the frames, or one, each held until the next.

    The first of them is also shown before its time, so that the length stays.
    """

    type = "frame-freeze"

    def change(self, video: WholeVideo, level: int, random: VideoRandom) -> Transformed:
        """Return the video that stands still most of the time."""
        count = len(video.frames)
        least = (1, 1, 1, 2, 1)[level]
        kept = min(count, max(least, int(FREEZE[level] * count)))
        places = random.permutation(count)[0][:kept].sort().values.numpy()
        held = np.searchsorted(places, np.arange(count), side="right") - 1
        return chosen(video, places[held.clip(0)], kept=kept)
