"""Keeping results in the pixel range without losing gradients to rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def clamp_straight_through(clips: Tensor) -> Tensor:
    """Return clips clamped to [0, 1] with the gradient of the identity.

    A weighted mean of white pixels may exceed 1 by a rounding error; a plain clamp would then
    remove the gradient of every saturated pixel.
    """
    return clips + (clips.clamp(0, 1) - clips).detach()
