"""Peak signal-to-noise ratio, of the whole video and as a mean over frames."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from vcr_core.protocols import Reading

from vcr_metrics.mse import frame_mse
from vcr_metrics.params import PsnrParams

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor
    from vcr_core.protocols import ClipInfo


def decibels(mse: float) -> float | None:
    """Return ``10 log10(255² / mse)``, or ``None`` where the error is zero.

    Args:
        mse: mean squared error in squared levels of 0..255.

    Example:
        >>> round(decibels(16.0), 6)
        36.089604
        >>> decibels(0.0) is None
        True
    """
    return 10 * math.log10(255**2 / mse) if mse > 0 else None


class Psnr:
    """Peak signal-to-noise ratio in dB, in both conventions.

    ``psnr`` comes from the mean squared error of the whole video, as scikit-image computes it for
    a 4-D array and as the tables of the VCR-Bench paper do. ``psnr_frame_mean`` averages the dB of
    the frames, an identical frame counting as ``frame_cap_db``; by Jensen's inequality it is never
    below ``psnr`` as long as no frame reaches the cap.
    """

    def __init__(self, params: PsnrParams | None = None) -> None:
        self.params = params or PsnrParams()

    def measure(self, reference: Tensor, test: Tensor, info: ClipInfo) -> Mapping[str, Reading]:
        """Return ``{"psnr": …, "psnr_frame_mean": …}``.

        Identical videos have no finite PSNR: both values are ``None`` with the reason
        ``identical``, as is the entry of an identical frame in ``per_frame``.

        Args:
            reference: ``[T, C, H, W]``, float32 in [0, 1] or uint8.
            test: the same shape, dtype and device.
            info: not used.

        Raises:
            ValueError: for videos that do not match, or values outside the range.
        """
        frames = frame_mse(reference, test)
        per_frame = tuple(decibels(mse) for mse in frames)
        whole = decibels(sum(frames) / len(frames))
        if whole is None:
            missing = Reading(None, "identical")
            return {"psnr": Reading(None, "identical", per_frame), "psnr_frame_mean": missing}
        cap = self.params.frame_cap_db
        capped = [cap if value is None else min(value, cap) for value in per_frame]
        mean = Reading(sum(capped) / len(capped))
        return {"psnr": Reading(whole, per_frame=per_frame), "psnr_frame_mean": mean}
