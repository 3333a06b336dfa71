"""From the contract's [0, 1] floats to the 0..255 levels that every formula here is written in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor
    from vcr_core.protocols import ClipInfo

# One float64 temporary of a chunk stays below 8 MiB, whatever the length and size of the video.
_CHUNK_ELEMENTS = 2**20


def to_levels(video: Tensor) -> Tensor:
    """Return ``video`` on the 8-bit grid as float64 in 0..255.

    The range follows from the dtype and is never guessed from the data: floats are fractions of
    the pixel range and become ``round(255 * value)``, uint8 values are levels already. The
    conversion comes before any subtraction, because uint8 arithmetic is modulo 256.

    Args:
        video: any shape; floating point in [0, 1] or uint8.

    Raises:
        ValueError: for another dtype, for NaN or infinite values, and for values outside the range.

    Example:
        >>> to_levels(torch.tensor([0.0, 0.5, 1.0])).tolist()
        [0.0, 128.0, 255.0]
    """
    if video.dtype == torch.uint8:
        return video.to(torch.float64)
    if not video.is_floating_point():
        raise ValueError(f"expected float32 in [0, 1] or uint8, got {video.dtype}")
    levels = (video.to(torch.float64) * 255).round_()
    low, high = (v.item() for v in levels.aminmax())
    # NaN fails every comparison, so it lands here too.
    if not (low >= 0 and high <= 255):
        raise ValueError(
            "values must be finite and in [0, 1] "
            f"(found {low / 255:.4g} to {high / 255:.4g} in a video of shape {tuple(video.shape)})"
        )
    return levels


def validate_pair(reference: Tensor, test: Tensor) -> None:
    """Refuse two videos that cannot be compared; nothing is truncated to the shorter of two.

    Raises:
        ValueError: if the two do not match in shape, dtype or device, are not four-dimensional or
            empty.
    """
    for name in ("shape", "dtype", "device"):
        if getattr(reference, name) != getattr(test, name):
            raise ValueError(
                f"reference and test differ in {name}: "
                f"{tuple(reference.shape)} {reference.dtype} on {reference.device} against "
                f"{tuple(test.shape)} {test.dtype} on {test.device}"
            )
    if reference.ndim != 4 or reference.numel() == 0:
        raise ValueError(
            "expected two videos [T, C, H, W] with at least one frame, "
            f"got {tuple(reference.shape)} and {tuple(test.shape)}"
        )


def frame_pairs(reference: Tensor, test: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield both videos in chunks of whole frames, ``[t, C, H, W]`` each, as levels.

    Args:
        reference: ``[T, C, H, W]``, floating point in [0, 1] or uint8.
        test: the same shape, dtype and device.

    Raises:
        ValueError: if :func:`validate_pair` or :func:`to_levels` refuses them.
    """
    validate_pair(reference, test)
    frames = chunk_frames(reference)
    for start in range(0, reference.shape[0], frames):
        one, other = (v[start : start + frames] for v in (reference, test))
        yield to_levels(one), to_levels(other)


def chunk_frames(video: Tensor) -> int:
    """Return how many frames of ``[T, C, H, W]`` are worked on at once."""
    return max(1, _CHUNK_ELEMENTS // video[0].numel())


def clip_length(video: Tensor, info: ClipInfo) -> int:
    """Return how many frames each of the clips has that a video consists of.

    Raises:
        ValueError: if the frames are not as many clips of equal length as ``info`` says.
    """
    frames = len(video)
    if info.clips < 1 or frames % info.clips:
        raise ValueError(f"{frames} frames are not {info.clips} clips of equal length")
    return frames // info.clips
