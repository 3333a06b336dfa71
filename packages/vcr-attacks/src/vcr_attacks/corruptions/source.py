"""What corruptions of whole videos share: they act on the decoded frames before any sampling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from vcr_core.protocols import Transformed

from vcr_attacks.params.corruptions import CorruptionParams

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from vcr_core.protocols import TransformContext, WholeVideo
    from vcr_core.randomness import VideoRandom

    Frames = NDArray[np.uint8]

P = TypeVar("P", bound=CorruptionParams)


class SourceCorruption(ABC, Generic[P]):
    """Base of corruptions of whole videos.

    Attributes:
        type: name of the component, for the record and for messages.
        params: severity, and what else there is.
    """

    type: ClassVar[str]
    params: P

    @abstractmethod
    def change(self, video: WholeVideo, level: int, random: VideoRandom) -> Transformed:
        """Return the damaged video.

        Args:
            video: the original.
            level: 0 to 4, position in the table of strengths.
            random: the video's generator, one row.
        """

    def transform(self, video: WholeVideo, ctx: TransformContext) -> Transformed:
        """Return the damaged video; severity 0 leaves it as it is."""
        severity = self.params.severity
        facts = {"type": self.type, "severity": severity}
        if severity == 0:
            return Transformed(video.frames, tuple(range(len(video.frames))), facts)
        changed = self.change(video, severity - 1, ctx.random)
        return Transformed(
            changed.frames, changed.index_map, {**facts, **changed.facts}, changed.aligned
        )


class SeverityCorruption(SourceCorruption[CorruptionParams]):
    """Base of those whose only parameter is the severity."""

    def __init__(self, params: CorruptionParams | None = None) -> None:
        self.params = params or CorruptionParams()


def chosen(
    video: WholeVideo, index: Sequence[int] | NDArray[np.int64], **facts: Any
) -> Transformed:
    """Return frames of the video in another order or number.

    Args:
        video: the original.
        index: source frame of each frame of the result.
        facts: for the record.
    """
    order = np.asarray(index, np.int64)
    same_length = len(order) == len(video.frames)
    return Transformed(video.frames[order], tuple(order.tolist()), facts, aligned=same_length)


def repainted(frames: Frames, **facts: Any) -> Transformed:
    """Return frames that show what the source's frames of the same number show, damaged."""
    return Transformed(frames, tuple(range(len(frames))), facts)
