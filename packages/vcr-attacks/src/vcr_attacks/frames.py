"""Which frames may change, and which matter most."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor
    from vcr_core.threat import ThreatModel
    from vcr_core.victim import LossFn, Victim


def free_frames(threat: ThreatModel, video: Tensor) -> list[int]:
    """Return the positions of frames that the threat lets change, in order."""
    return sorted(threat.frames) if threat.frames is not None else list(range(video.shape[1]))


def saliency(grad: Tensor, frames: Sequence[int]) -> Tensor:
    """Return the mean absolute gradient of each frame ``[b, T]``, -inf where it may not change."""
    sizes = grad.abs().mean(dim=(2, 3, 4))
    found = sizes.new_full(sizes.shape, -math.inf)
    chosen = list(frames)
    found[:, chosen] = sizes[:, chosen]
    return found


def frame_saliency(
    victim: Victim, video: Tensor, rows: Tensor, frames: Sequence[int], loss: LossFn
) -> Tensor:
    """Return :func:`saliency` at ``video [b, ...]``; one gradient a video."""
    return saliency(victim.loss_and_grad(video, rows, loss).grad, frames)
