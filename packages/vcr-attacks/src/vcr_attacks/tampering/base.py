"""What all operators share: the segment, what is recorded, and the length of the result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from vcr_core.protocols import Transformed

from vcr_attacks.tampering.segment import Segment, segment_of

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray
    from vcr_core.protocols import TransformContext, WholeVideo

    from vcr_attacks.params.tampering import CutParams, TamperParams

    Frames = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Changed:
    """Frames of an operator's result.

    Attributes:
        frames: ``[F', H, W, 3]`` uint8.
        index_map: source frame of each, -1 for an invented one.
        segment: what was changed, in frames of the result.
        facts: what the operator drew.
    """

    frames: Frames
    index_map: NDArray[np.int64]
    segment: Segment
    facts: dict[str, Any]


P = TypeVar("P", bound="TamperParams")


class Tamper(ABC, Generic[P]):
    """Base of the operators.

    Attributes:
        type: what the record calls it, the name of the component.
    """

    type: ClassVar[str]
    params: P

    @abstractmethod
    def change(self, video: WholeVideo, segment: Segment, ctx: TransformContext) -> Changed:
        """Return the changed video; ``segment`` is not empty.

        Args:
            video: the original.
            segment: frames to change.
            ctx: the video's generator and other videos.
        """

    def transform(self, video: WholeVideo, ctx: TransformContext) -> Transformed:
        """Return the tampered video; a segment without frames leaves it as it is.

        Raises:
            IncompatibleComponents: if the video's frame rate is needed and not known.
        """
        count = len(video.frames)
        segment = segment_of(self.params, count, video.fps, ctx.random, self.type)
        whole = np.arange(count)
        if len(segment) == 0:
            changed = Changed(video.frames, whole, segment, {})
        else:
            changed = self.change(video, segment, ctx)
        facts = {
            "type": self.type,
            "start": changed.segment.start,
            "end": changed.segment.end,
            "n_frames": len(segment),
            "duration_effective": _seconds(len(segment), video.fps),
            **changed.facts,
        }
        return Transformed(
            changed.frames,
            tuple(int(i) for i in changed.index_map),
            facts,
            aligned=len(changed.frames) == count,
        )


def reordered(
    video: WholeVideo,
    index: NDArray[np.int64],
    segment: Segment,
    params: CutParams | None = None,
    **facts: Any,
) -> Changed:
    """Return the video's frames in another order.

    Args:
        video: the original.
        index: source frame of each frame of the result.
        segment: what counts as changed.
        params: says whether the old length is to be kept.
        facts: for the record.
    """
    count = len(video.frames)
    if params is not None and params.keep_length:
        index = np.concatenate([index, np.full(max(count - len(index), 0), index[-1])])[:count]
        segment = Segment(min(segment.start, count), min(segment.end, count))
    return Changed(video.frames[index], index, segment, facts)


def painted(
    video: WholeVideo, segment: Segment, inside: Frames, *, invented: bool = False, **facts: Any
) -> Changed:
    """Return the video with other pixels in the segment.

    Args:
        video: the original.
        segment: which frames.
        inside: ``[n, H, W, 3]`` what they show now.
        invented: whether nothing of the source is left in them.
        facts: for the record.
    """
    frames = video.frames.copy()
    frames[segment.start : segment.end] = inside
    index = np.arange(len(frames))
    if invented:
        index[segment.start : segment.end] = -1
    return Changed(frames, index, segment, facts)


def inside(video: WholeVideo, segment: Segment) -> Frames:
    """Return the frames of the segment ``[n, H, W, 3]``."""
    return video.frames[segment.start : segment.end]


def _seconds(frames: int, fps: Fraction | None) -> float | None:
    return None if fps is None else float(frames / fps)
