"""What metrics of frames by a network have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import torch
from vcr_core.errors import IncompatibleComponents
from vcr_core.protocols import Reading

from vcr_metrics.levels import frame_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor
    from vcr_core.protocols import ClipInfo

_FRAMES = 8


class LearnedMetric(ABC):
    """A distance of frames by a network: the mean over frames, at their own size.

    Attributes:
        key: name of the reading.
        smallest: shorter side in pixels below which the network runs out of places.
    """

    key: ClassVar[str]
    smallest: ClassVar[int]

    @torch.no_grad()
    def measure(self, reference: Tensor, test: Tensor, info: ClipInfo) -> Mapping[str, Reading]:
        """Return the mean over frames with one value a frame; ``None`` where they are too small.

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
            one, other = (frames.to(torch.float32) / 255 for frames in levels)
            if min(one.shape[-2:]) < self.smallest:
                return {self.key: Reading(None, f"frame smaller than {self.smallest} px")}
            for start in range(0, len(one), _FRAMES):
                chosen = slice(start, start + _FRAMES)
                values += self.frames(one[chosen], other[chosen]).tolist()
        return {self.key: Reading(sum(values) / len(values), per_frame=tuple(values))}

    def distance(self, reference: Tensor, test: Tensor) -> Tensor:
        """Return the distance of each video, ``[B]``, differentiable with respect to ``test``.

        Args:
            reference: ``[B, T, C, H, W]``, float32 in [0, 1].
            test: the same shape and device.

        Raises:
            ComponentUnavailable: if the weights' file is not what it should be.
            IncompatibleComponents: for frames that are too small.
        """
        height, width = test.shape[-2:]
        if min(height, width) < self.smallest:
            raise IncompatibleComponents(
                f"{self.key} needs frames of at least {self.smallest}x{self.smallest} pixels, "
                f"these have {height}x{width}"
            )
        values = self.frames(reference.flatten(0, 1), test.flatten(0, 1))
        return values.view(test.shape[:2]).mean(dim=1)

    @abstractmethod
    def frames(self, one: Tensor, other: Tensor) -> Tensor:
        """Return ``[n]`` for pictures ``[n, 3, H, W]`` in [0, 1], differentiable."""
