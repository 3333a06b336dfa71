"""VMAF, as a metric of stored videos."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import Reading

from vcr_metrics.backbones import release
from vcr_metrics.levels import clip_length, validate_pair
from vcr_metrics.libvmaf import Ffmpeg, VmafFailed
from vcr_metrics.params import VmafParams

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor
    from vcr_core.protocols import ClipInfo

KEYS = ("vmaf", "vmaf_frame_min")

_SMALLEST = 32
_CHANNELS = 3


class Vmaf:
    """Video Multimethod Assessment Fusion by libvmaf: mean over frames, and the worst frame.

    Li, Aaron, Katsavounidis, Moorthy, Manohara, 2016. Frames keep their size; the model was trained
    for 1080p at three screen heights. Identical videos score between 96.5 and 100, not 100: the
    first frame and still pictures have no motion. The order of reference and test matters.

    Raises:
        ComponentUnavailable: if there is no FFmpeg with libvmaf.
    """

    def __init__(self, params: VmafParams | None = None) -> None:
        self.params = params or VmafParams()
        self.ffmpeg = Ffmpeg(self.params.ffmpeg)
        source = f" of {release('imageio-ffmpeg')}" if not self.params.ffmpeg else ""
        self.by = f"{self.params.model}, FFmpeg {self.ffmpeg.version}{source}, yuv420p"

    @torch.no_grad()
    def measure(self, reference: Tensor, test: Tensor, info: ClipInfo) -> Mapping[str, Reading]:
        """Return both numbers, with one value a frame; ``None`` with the reason where that fails.

        Args:
            reference: ``[T, 3, H, W]``, float32 in [0, 1] or uint8.
            test: the same shape, dtype and device.
            info: frames per second; each clip is scored as a sequence of its own.

        Raises:
            ValueError: for videos that do not match, values outside the range, or frames that are
                not as many clips of equal length as ``info`` says.
        """
        validate_pair(reference, test)
        length = clip_length(reference, info)
        if min(reference.shape[-2:]) < _SMALLEST:
            return _missing(f"frame smaller than {_SMALLEST} px")
        if reference.shape[1] != _CHANNELS:
            return _missing(f"{reference.shape[1]} channels, not {_CHANNELS}")
        values: list[float] = []
        try:
            for start in range(0, len(reference), length):
                values += self.ffmpeg.scores(
                    reference[start : start + length],
                    test[start : start + length],
                    model=self.params.model,
                    fps=info.fps,
                    timeout_s=self.params.timeout_s,
                )
        except VmafFailed as failure:
            return _missing(str(failure), self.by)
        return {
            KEYS[0]: Reading(sum(values) / len(values), per_frame=tuple(values), by=self.by),
            KEYS[1]: Reading(min(values), by=self.by),
        }


def _missing(reason: str, by: str = "") -> dict[str, Reading]:
    return {key: Reading(None, reason, by=by) for key in KEYS}
