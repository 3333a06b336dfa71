"""Fewer frames, filled up again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from vcr_defenses.candidates import Candidates
from vcr_defenses.draws import draw_shape
from vcr_defenses.params.temporal import TemporalSubsampleParams
from vcr_defenses.pixel_range import clamp_straight_through
from vcr_defenses.time_axis import take_frames

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.randomness import VideoRandom


class TemporalSubsample(Candidates):
    """Keep every ``stride``-th frame, or random ones, and fill the gaps.

    The first frame always stays; with linear filling the last one stays too, as there is nothing
    behind it to interpolate with. The gradient is exact.
    """

    def __init__(self, params: TemporalSubsampleParams | None = None) -> None:
        self.params = params or TemporalSubsampleParams()
        super().__init__(self.params.votes, self.params.merge)

    @property
    def stochastic(self) -> bool:
        """Whether these parameters make the defense random."""
        return self.params.mode == "random" and 0 < self.params.keep < 1

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return clips of the same length; frames that stay are unchanged.

        Args:
            clips: ``[B, V, T, C, H, W]``, float in [0, 1].
            random: in mode ``random`` one choice a video or clip is drawn from it.
        """
        stays = self._stays(clips, random)
        before, after, share = neighbours(stays)
        shown = take_frames(clips, before)
        if self.params.fill == "repeat":
            return shown
        share = share.to(clips).view(len(share), -1, stays.shape[-1], 1, 1, 1)
        filled = torch.lerp(shown, take_frames(clips, after), share)
        return clamp_straight_through(filled)

    def _stays(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return ``[B, T]`` or ``[B, V, T]`` booleans on the CPU."""
        batch, count = clips.shape[0], clips.shape[2]
        if self.params.mode == "stride":
            stays = (torch.arange(count) % self.params.stride == 0).repeat(batch, 1)
        else:
            shape = draw_shape(self.params.per, clips)
            stays = random.uniform(*shape, count).cpu() < self.params.keep
        stays[..., 0] = True
        if self.params.fill == "linear":
            stays[..., -1] = True
        return stays


def neighbours(stays: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the frames that stay around each frame, and how far it is on the way between them.

    Args:
        stays: ``[..., T]`` booleans, the first one true, and the last one where shares matter.

    Returns:
        Indices of the last frame at or before and of the first at or after, int64, and the share
        of the latter in [0, 1), all ``[..., T]``.
    """
    count = stays.shape[-1]
    positions = torch.arange(count).expand(stays.shape)
    before = torch.where(stays, positions, 0).cummax(dim=-1).values
    ahead = torch.where(stays, positions, count - 1)
    after = ahead.flip(-1).cummin(dim=-1).values.flip(-1)
    return before, after, (positions - before) / (after - before).clamp_min(1)
