"""Contracts of attacks that act on a whole video before its sampling, or on the sampling itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from vcr_core.protocols import Sampler
    from vcr_core.randomness import VideoRandom
    from vcr_core.video.sampling import SamplingPlan


@dataclass(frozen=True, slots=True)
class WholeVideo:
    """A decoded video before anything has been sampled from it.

    Attributes:
        id: video id.
        label: index in the dataset's label space.
        frames: ``[F, H, W, 3]`` uint8, not to be modified.
        fps: frames per second, if known.
    """

    id: str
    label: int
    frames: NDArray[np.uint8]
    fps: Fraction | None


@dataclass(frozen=True, slots=True)
class Transformed:
    """What a transform made of a whole video.

    Attributes:
        frames: ``[F', H, W, 3]`` uint8, the size of the original.
        index_map: for each frame the source frame that it came from, -1 for an invented one.
        facts: what was done, plain data; goes into the record. ``start`` and ``end`` delimit the
            changed frames of the output, where there is one such segment.
        aligned: whether frame ``i`` of the result is to be compared with frame ``i`` of the source.
    """

    frames: NDArray[np.uint8]
    index_map: tuple[int, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    aligned: bool = True


@dataclass(slots=True)
class TransformContext:
    """What a transform may use besides the video.

    Attributes:
        random: the video's generator (role ``attack``), one row.
        donors: reads another video of the dataset, chosen by the generator; ``True`` asks for
            one with another label.
    """

    random: VideoRandom
    donors: Callable[[bool], WholeVideo] | None = None

    def donor(self, *, other_label: bool = True) -> WholeVideo:
        """Return another video of the dataset.

        Raises:
            NotAvailable: if there is none.
        """
        if self.donors is None:
            from vcr_core.errors import NotAvailable

            raise NotAvailable("there is no other video to take frames from")
        return self.donors(other_label)


@runtime_checkable
class SourceTransform(Protocol):
    """An attack with access ``none`` and stage ``source``: it changes the decoded video."""

    def transform(self, video: WholeVideo, ctx: TransformContext) -> Transformed:
        """Return the changed video; the same for the same generator."""
        ...


@runtime_checkable
class PlanTransform(Protocol):
    """An attack with access ``none`` and stage ``plan``: it samples other frames."""

    def plans(
        self, sampler: Sampler, count: int, fps: Fraction | None
    ) -> tuple[SamplingPlan, SamplingPlan]:
        """Return the plan of the clean clips and that of the changed ones, for ``count`` frames.

        Raises:
            VideoSkipped: if this video cannot be sampled so.
        """
        ...
