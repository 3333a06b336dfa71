"""What all corruptions share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

import torch

from vcr_attacks.params.corruptions import CorruptionParams

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.goals import Goals
    from vcr_core.protocols import AttackContext
    from vcr_core.randomness import VideoRandom
    from vcr_core.victim import Victim

P = TypeVar("P", bound=CorruptionParams)

_REFERENCE_SIDE = 224


class Corruption(ABC, Generic[P]):
    """Base of the corruptions: nobody is asked, the frames are damaged.

    Attributes:
        params: severity, and what else there is.
    """

    params: P

    @abstractmethod
    def corrupt(self, video: Tensor, level: int, random: VideoRandom) -> Tensor:
        """Return damaged videos, not yet clamped.

        Args:
            video: ``[B, T, 3, H, W]`` float32 in [0, 1]; one video when an attack asks.
            level: 0 to 4, position in the table of strengths.
            random: one generator a video.
        """

    def attack(self, victim: Victim, video: Tensor, goals: Goals, ctx: AttackContext) -> Tensor:
        """Return damaged videos in [0, 1]; severity 0 leaves them as they are."""
        if self.params.severity == 0:
            return video.clone()
        level = self.params.severity - 1
        # One by one: filters round differently in batches of another size.
        done = [
            self.corrupt(video[row : row + 1], level, ctx.random.select([row]))
            for row in range(len(video))
        ]
        return torch.cat(done).clamp(0, 1)


class FrameCorruption(Corruption[CorruptionParams]):
    """Base of corruptions whose only parameter is the severity."""

    def __init__(self, params: CorruptionParams | None = None) -> None:
        self.params = params or CorruptionParams()


def in_pixels(length: float, video: Tensor) -> float:
    """Return a length given for frames of 224 pixels in pixels of these frames."""
    return length * min(video.shape[-2:]) / _REFERENCE_SIDE
