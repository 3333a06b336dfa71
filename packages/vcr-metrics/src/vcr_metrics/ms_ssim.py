"""Multi-scale structural similarity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch
import torch.nn.functional as F
from vcr_core.errors import IncompatibleComponents
from vcr_core.protocols import Reading

from vcr_metrics.levels import frame_pairs
from vcr_metrics.ssim import gaussian_taps, similarity_maps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor
    from vcr_core.protocols import ClipInfo

WEIGHTS: Final = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
"""Exponents from the finest to the coarsest scale."""

_TAPS: Final = tuple(gaussian_taps(1.5, 5))
_SMALLEST: Final = (len(_TAPS) - 1) * 2 ** (len(WEIGHTS) - 1) + 1


def frame_ms_ssim(one: Tensor, other: Tensor) -> Tensor:
    """Return the MS-SSIM of each frame, the mean over channels.

    Args:
        one: ``[T, C, H, W]``, levels in 0..255, shorter side above 160.
        other: the same shape.

    Returns:
        ``[T]`` in [0, 1], of the dtype of the frames.
    """
    product = one.new_ones(one.shape[:2])
    for number, weight in enumerate(WEIGHTS):
        if number:
            one, other = _halved(one), _halved(other)
        luminance, structure = similarity_maps(one, other, _TAPS)
        last = number == len(WEIGHTS) - 1
        scale = (luminance * structure if last else structure).mean(dim=(2, 3))
        # A broken power has no value below 0 and no gradient at 0, also where it is not chosen.
        power = scale.clamp_min(torch.finfo(scale.dtype).tiny) ** weight
        product = product * power.where(scale > 0, 0)
    return product.mean(dim=1)


def _halved(frames: Tensor) -> Tensor:
    """Return 2x2 means; an odd side is first lengthened by its edge, so no pixel is lost."""
    # Padding by torch has no deterministic gradient on GPUs.
    if frames.shape[-2] % 2:
        frames = torch.cat([frames[..., :1, :], frames], dim=-2)
    if frames.shape[-1] % 2:
        frames = torch.cat([frames[..., :1], frames], dim=-1)
    return F.avg_pool2d(frames, 2)


class MsSsim:
    """Multi-scale SSIM on each RGB channel, averaged over channels and then over frames.

    Wang, Simoncelli, Bovik, Asilomar 2003, equation (7): five scales, 2x2 means between them,
    luminance at the coarsest one only, window and constants of ``ssim``. A scale whose contrast
    and structure are below 0 counts as 0. Needs a shorter side above 160 pixels; with fewer scales
    it would be another metric. The definition is fixed: it has no parameters.
    """

    key = "ms-ssim"

    @torch.no_grad()
    def measure(self, reference: Tensor, test: Tensor, info: ClipInfo) -> Mapping[str, Reading]:
        """Return the mean over frames, with one value a frame; ``None`` for smaller frames.

        Args:
            reference: ``[T, C, H, W]``, float32 in [0, 1] or uint8.
            test: the same shape, dtype and device.
            info: not used.

        Raises:
            ValueError: for videos that do not match, or values outside the range.
        """
        values: list[float] = []
        for one, other in frame_pairs(reference, test):
            if min(one.shape[-2:]) < _SMALLEST:
                return {self.key: Reading(None, f"frame smaller than {_SMALLEST} px")}
            values += frame_ms_ssim(one, other).tolist()
        return {self.key: Reading(sum(values) / len(values), per_frame=tuple(values))}

    def distance(self, reference: Tensor, test: Tensor) -> Tensor:
        """Return ``1 - MS-SSIM`` of each video, ``[B]``, differentiable in ``test``.

        In the dtype of the videos and without rounding to 8 bits.

        Args:
            reference: ``[B, T, C, H, W]``, floating point in [0, 1].
            test: the same shape, dtype and device.

        Raises:
            IncompatibleComponents: for frames that are too small.
        """
        height, width = test.shape[-2:]
        if min(height, width) < _SMALLEST:
            raise IncompatibleComponents(
                f"{self.key} needs frames of at least {_SMALLEST}x{_SMALLEST} pixels, "
                f"these have {height}x{width}"
            )
        one, other = ((video * 255).flatten(0, 1) for video in (reference, test))
        return 1 - frame_ms_ssim(one, other).view(test.shape[:2]).mean(dim=1)
