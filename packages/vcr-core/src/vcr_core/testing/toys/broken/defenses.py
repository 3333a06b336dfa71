"""Defenses with the faults that purifiers and filters had."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from vcr_core.protocols import InputDefense

if TYPE_CHECKING:
    from torch import Tensor

    from vcr_core.protocols import ClipFn
    from vcr_core.randomness import VideoRandom


class NotANumber(InputDefense):
    """Returns NaN, as half precision does."""

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return NaN."""
        return clips * float("nan")


class Overshoots(InputDefense):
    """Leaves [0, 1]."""

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return clips that are too bright."""
        return clips * 2


class GlobalRandom(InputDefense):
    """Draws from torch's global generator."""

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return clips with ambient noise."""
        return (clips + 0.01 * torch.randn_like(clips)).clamp(0, 1)


class Undeclared(InputDefense):
    """Random, though its spec does not say so."""

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return noisy clips."""
        return (clips + random.normal(*clips.shape[1:], std=0.02)).clamp(0, 1)


class Steady(InputDefense):
    """Not random, though its spec says so."""

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return the clips."""
        return clips.clone()


class SharedDraw(InputDefense):
    """Draws once for the batch, from the last video's generator."""

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return clips with one draw of noise for all."""
        noise = random.normal(*clips.shape[1:], std=0.05)
        return (clips + noise.flip(0)).clamp(0, 1)


class Cuts(InputDefense):
    """Cuts the graph, though its spec says ``exact``."""

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return detached clips."""
        return clips.detach() * 0.9


class InPlace(InputDefense):
    """Changes the clips that it was given."""

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Darken in place."""
        return clips.mul_(0.9)


class NeedsFourFrames(InputDefense):
    """Indexes a frame that short clips do not have."""

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return clips with the fourth frame repeated."""
        return clips[:, :, [0, 1, 2, 3]]


class DropsClasses:
    """Returns predictions of two classes only."""

    def wrap(self, predict: ClipFn, random: VideoRandom) -> ClipFn:
        """Return a function of a wrong shape."""
        return lambda clips: predict(clips)[:, :2]
