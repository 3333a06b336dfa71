"""Whether the perceptual change from frame to frame is that of the clean video."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import Reading

from vcr_metrics.levels import chunk_frames, clip_length, to_levels, validate_pair
from vcr_metrics.st_lpips import StLpips

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor
    from vcr_core.protocols import ClipInfo

    from vcr_metrics.params import StLpipsParams


class Tlp:
    """Temporal LPIPS: mean of ``|D(x[t], x[t+1]) - D(a[t], a[t+1])|`` over neighbouring frames.

    Chu, Xie, Mayer, Leal-Taixé, Thuerey, ACM Transactions on Graphics 39(4), 2020, with ST-LPIPS
    as ``D`` in the place of LPIPS: its weights come with a package. Published values, which are of
    LPIPS, do not compare. A perturbation that stands still may score 0 and be visible all the same.

    Raises:
        ComponentUnavailable: if the weights of ``st-lpips`` are not there.
    """

    def __init__(self, params: StLpipsParams | None = None) -> None:
        self.distance_of = StLpips(params)

    @torch.no_grad()
    def measure(self, reference: Tensor, test: Tensor, info: ClipInfo) -> Mapping[str, Reading]:
        """Return ``{"tlp": …}``; ``None`` for single frames and small ones.

        Args:
            reference: ``[T, C, H, W]``, float32 in [0, 1] or uint8.
            test: the same shape, dtype and device.
            info: frames of different clips are not compared.

        Raises:
            ComponentUnavailable: if the weights' file is not what it should be.
            ValueError: for videos that do not match, values outside the range, or frames that are
                not as many clips of equal length as ``info`` says.
        """
        validate_pair(reference, test)
        length, smallest = clip_length(reference, info), self.distance_of.smallest
        if length < 2:
            return {"tlp": Reading(None, "clips of one frame")}
        if min(reference.shape[-2:]) < smallest:
            return {"tlp": Reading(None, f"frame smaller than {smallest} px")}
        gaps = (self._steps(reference, length) - self._steps(test, length)).abs()
        return {"tlp": Reading(float(gaps.mean()), by=self.distance_of.by)}

    def _steps(self, video: Tensor, length: int) -> Tensor:
        """Return the distance of every frame to the next one of its clip."""
        found: list[Tensor] = []
        chunk = chunk_frames(video)
        for start in range(0, len(video), length):
            # A chunk ends with the frame that the next one begins with.
            for at in range(start, start + length - 1, chunk):
                frames = to_levels(video[at : min(at + chunk + 1, start + length)])
                maps = self.distance_of.features(frames.float() / 255)
                found.append(
                    self.distance_of.compare([m[:-1] for m in maps], [m[1:] for m in maps])
                )
        return torch.cat(found).double()
