"""One short defense for every way in which a gradient can pass, and for randomness."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcr_core.protocols import InputDefense

if TYPE_CHECKING:
    from torch import Tensor

    from vcr_core.protocols import ClipFn
    from vcr_core.randomness import VideoRandom


class Darken(InputDefense):
    """Nine tenths of the brightness: an exact gradient."""

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return darker clips."""
        return clips * 0.9


class Quantise(InputDefense):
    """Sixteen levels: no gradient of its own, the identity as a surrogate."""

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return clips whose values are multiples of 1/15."""
        return (clips * 15).round() / 15


class Opaque(InputDefense):
    """Sixteen levels, and no gradient is offered at all."""

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return clips whose values are multiples of 1/15, without a graph."""
        return (clips.detach() * 15).round() / 15


class Grain(InputDefense):
    """Random noise that every video draws for itself."""

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return clips with noise of standard deviation 0.02."""
        return (clips + random.normal(*clips.shape[1:], std=0.02).to(clips)).clamp(0, 1)


class Vote:
    """Two candidates, the clip and its mirror image; the mean of their log-probabilities."""

    def wrap(self, predict: ClipFn, random: VideoRandom) -> ClipFn:
        """Return a function that averages both predictions."""
        return lambda clips: (predict(clips) + predict(clips.flip(-1))) / 2
