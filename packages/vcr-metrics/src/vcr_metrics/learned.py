"""What metrics of frames by a network have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import torch
from vcr_core.errors import IncompatibleComponents
from vcr_core.protocols import Reading

from vcr_metrics.levels import frame_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor
    from vcr_core.protocols import ClipInfo

_FRAMES = 8
_ENDS = ("_frame_max", "_frame_p95")


class LearnedMetric(ABC):
    """A distance of frames by a network: the mean over frames, at their own size.

    Attributes:
        key: name of the reading.
        smallest: shorter side in pixels below which the network runs out of places.
        by: library, version and weights, for the record.
    """

    key: ClassVar[str]
    smallest: ClassVar[int]
    by: str

    @torch.no_grad()
    def measure(self, reference: Tensor, test: Tensor, info: ClipInfo) -> Mapping[str, Reading]:
        """Return mean, largest value and 95th percentile over frames.

        The mean's reading has one value a frame; all are ``None`` where frames are too small.

        Args:
            reference: ``[T, C, H, W]``, float32 in [0, 1] or uint8.
            test: the same shape, dtype and device.
            info: not used.

        Raises:
            ComponentUnavailable: if the weights' file is not what it should be.
            ValueError: for videos that do not match, or values outside the range.
        """
        values: list[float] = []
        for levels in frame_pairs(reference, test):
            one, other = (self.seen(frames.to(torch.float32) / 255) for frames in levels)
            if min(one.shape[-2:]) < self.smallest:
                return self._missing(f"frame smaller than {self.smallest} px")
            for start in range(0, len(one), _FRAMES):
                chosen = slice(start, start + _FRAMES)
                values += self.frames(one[chosen], other[chosen]).tolist()
        return frame_summary(self.key, values, self.by)

    def distance(self, reference: Tensor, test: Tensor) -> Tensor:
        """Return the distance of each video, ``[B]``, differentiable with respect to ``test``.

        Args:
            reference: ``[B, T, C, H, W]``, float32 in [0, 1].
            test: the same shape and device.

        Raises:
            ComponentUnavailable: if the weights' file is not what it should be.
            IncompatibleComponents: for frames that are too small.
        """
        one, other = (self.seen(video.flatten(0, 1)) for video in (reference, test))
        height, width = other.shape[-2:]
        if min(height, width) < self.smallest:
            raise IncompatibleComponents(
                f"{self.key} needs frames of at least {self.smallest}x{self.smallest} pixels, "
                f"these have {height}x{width}"
            )
        return self.frames(one, other).view(test.shape[:2]).mean(dim=1)

    def seen(self, frames: Tensor) -> Tensor:
        """Return ``[n, 3, h, w]``: what the network looks at; the frames themselves by default."""
        return frames

    @abstractmethod
    def frames(self, one: Tensor, other: Tensor) -> Tensor:
        """Return ``[n]`` for pictures ``[n, 3, H, W]`` in [0, 1], differentiable."""

    def _missing(self, reason: str) -> dict[str, Reading]:
        return {f"{self.key}{end}": Reading(None, reason) for end in ("", *_ENDS)}


def frame_summary(key: str, values: Sequence[float], by: str) -> dict[str, Reading]:
    """Return mean, largest and 95th percentile of one value a frame; one ruined frame shows.

    Example:
        >>> found = frame_summary("d", [0.0, 0.0, 1.0], "")
        >>> [round(reading.value, 3) for reading in found.values()]
        [0.333, 1.0, 0.9]
    """
    spread = torch.tensor(values, dtype=torch.float64)
    numbers = float(spread.mean()), float(spread.max()), float(spread.quantile(0.95))
    return {
        f"{key}{end}": Reading(number, per_frame=() if end else tuple(values), by=by)
        for end, number in zip(("", *_ENDS), numbers, strict=True)
    }
