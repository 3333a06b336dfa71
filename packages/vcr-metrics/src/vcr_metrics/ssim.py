"""Structural similarity: the canonical Gaussian form and the uniform form of older tables.

Wang, Bovik, Sheikh, Simoncelli, "Image quality assessment: from error visibility to structural
similarity", IEEE Transactions on Image Processing 13(4), 2004, equation (13).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.errors import IncompatibleComponents
from vcr_core.protocols import Reading

from vcr_metrics.levels import frame_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor
    from vcr_core.protocols import ClipInfo

_C1 = (0.01 * 255) ** 2
_C2 = (0.03 * 255) ** 2


def gaussian_taps(sigma: float, radius: int) -> list[float]:
    """Return ``2 * radius + 1`` weights proportional to a Gaussian, with sum 1.

    Example:
        >>> [round(tap, 4) for tap in gaussian_taps(1.5, 2)]
        [0.1201, 0.2339, 0.2921, 0.2339, 0.1201]
    """
    taps = torch.arange(-radius, radius + 1, dtype=torch.float64)
    taps = (-taps.square() / (2 * sigma**2)).exp()
    weights: list[float] = (taps / taps.sum()).tolist()
    return weights


def _filter(frames: Tensor, taps: Sequence[float]) -> Tensor:
    """Return the separable filter's valid region: no padding, so borders need no cropping."""
    # Sums of shifted slices: many times faster than a float64 convolution of one channel.
    for axis in (-2, -1):
        size = frames.shape[axis] - len(taps) + 1
        total = frames.narrow(axis, 0, size) * taps[0]
        for shift, weight in enumerate(taps[1:], start=1):
            total.add_(frames.narrow(axis, shift, size), alpha=weight)
        frames = total
    return frames


def similarity_maps(
    one: Tensor, other: Tensor, taps: Sequence[float], correction: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Return luminance, and contrast times structure, at every position of the window.

    Args:
        one: ``[T, C, H, W]``, levels in 0..255, float64 unless digits do not matter.
        other: the same shape.
        taps: the window along one axis, with sum 1.
        correction: factor on variances and covariance; 1 for population statistics.

    Returns:
        ``[T, C, h, w]`` in [0, 1] and in [-1, 1], of the dtype of the frames.
    """
    # Moments around mid-grey lose fewer digits; float64 leaves about ten after the subtraction.
    one, other = one - 127.5, other - 127.5
    mean_one, mean_other = _filter(one, taps), _filter(other, taps)
    powers = _filter(one.square() + other.square(), taps)
    cross = _filter(one * other, taps)
    variances = correction * (powers - mean_one.square() - mean_other.square())
    covariance = correction * (cross - mean_one * mean_other)
    mean_one, mean_other = mean_one + 127.5, mean_other + 127.5
    luminance = (2 * mean_one * mean_other + _C1) / (mean_one.square() + mean_other.square() + _C1)
    return luminance, (2 * covariance + _C2) / (variances + _C2)


def frame_ssim(one: Tensor, other: Tensor, taps: Sequence[float], correction: float) -> Tensor:
    """Return the mean SSIM of each frame, ``[T]``: over positions, then over channels.

    Arguments as for :func:`similarity_maps`.
    """
    luminance, structure = similarity_maps(one, other, taps, correction)
    return (luminance * structure).flatten(1).mean(1)


class Ssim:
    """Structural similarity on each RGB channel, averaged over channels and then over frames.

    Gaussian window of 11 x 11 pixels with sigma 1.5, K1 = 0.01, K2 = 0.03, range 255, population
    statistics, only positions where the window lies inside the frame. Equals scikit-image's
    ``structural_similarity(…, channel_axis=2, data_range=255, gaussian_weights=True, sigma=1.5,
    use_sample_covariance=False)``. The definition is fixed: it has no parameters.

    Example:
        >>> from vcr_core.protocols import ClipInfo
        >>> grey = torch.full((1, 3, 16, 16), 60 / 255)
        >>> round(Ssim().measure(grey, grey, ClipInfo())["ssim"].value, 12)
        1.0
    """

    key = "ssim"
    taps: Sequence[float] = tuple(gaussian_taps(1.5, 5))
    correction = 1.0

    @torch.no_grad()
    def measure(self, reference: Tensor, test: Tensor, info: ClipInfo) -> Mapping[str, Reading]:
        """Return the mean over frames, with one value a frame.

        A frame whose shorter side is below the window has no SSIM: the value is ``None`` with the
        reason.

        Args:
            reference: ``[T, C, H, W]``, float32 in [0, 1] or uint8.
            test: the same shape, dtype and device.
            info: not used.

        Raises:
            ValueError: for videos that do not match, or values outside the range.
        """
        values: list[float] = []
        window = len(self.taps)
        for one, other in frame_pairs(reference, test):
            if min(one.shape[-2:]) < window:
                return {self.key: Reading(None, f"frame smaller than {window} px")}
            values += frame_ssim(one, other, self.taps, self.correction).tolist()
        return {self.key: Reading(sum(values) / len(values), per_frame=tuple(values))}

    def distance(self, reference: Tensor, test: Tensor) -> Tensor:
        """Return ``1 - SSIM`` of each video, ``[B]``, differentiable with respect to ``test``.

        Computed in the dtype of the videos and without rounding to 8 bits, so it agrees with
        :meth:`measure` on stored videos up to about 1e-5.

        Args:
            reference: ``[B, T, C, H, W]``, floating point in [0, 1].
            test: the same shape, dtype and device.

        Raises:
            IncompatibleComponents: for frames below the window.
        """
        window = len(self.taps)
        height, width = test.shape[-2:]
        if min(height, width) < window:
            raise IncompatibleComponents(
                f"{self.key} needs frames of at least {window}x{window} pixels, "
                f"these have {height}x{width}"
            )
        one, other = ((video * 255).flatten(0, 1) for video in (reference, test))
        similarity = frame_ssim(one, other, self.taps, self.correction)
        return 1 - similarity.view(test.shape[:2]).mean(dim=1)


class SsimUniform7(Ssim):
    """SSIM with a uniform 7 x 7 window and sample covariance.

    scikit-image's default, which the VCR-Bench tables use; not comparable with :class:`Ssim`.
    """

    key = "ssim-uniform7"
    taps = (1 / 7,) * 7
    correction = 49 / 48
