"""What a detector of tampering looks at: how grey frames differ from each other.

Everything works on grey levels of 0 to 255 in frames averaged down to 32x32, where camera noise
and the blocks of a codec hardly show, and on the whole of a video.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from torch.nn import functional

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    Floats = NDArray[np.float64]

SIDE: Final = 32
"""Side of the small frames in pixels."""

NEIGHBOURS: Final = 8
"""So many differences before and after one say what is usual there."""

FLOOR: Final = 0.35
"""Grey levels by which frames differ where nothing happens."""

_ALIKE: Final = 0.6
"""Correlation of frames that show the same."""

_WEIGHTS: Final = (0.299, 0.587, 0.114)


def grey_levels(clips: Tensor) -> Tensor:
    """Return ``[..., T, H, W]`` grey levels of 0 to 255 of RGB ``[..., T, 3, H, W]`` in [0, 1]."""
    weights = clips.new_tensor(_WEIGHTS).view(3, 1, 1)
    return (clips * weights).sum(dim=-3) * 255


def small_frames(grey: Tensor) -> Tensor:
    """Return ``[..., 32, 32]``, averages over the area that each pixel stands for."""
    flat = grey.flatten(0, -3).unsqueeze(1)
    return functional.adaptive_avg_pool2d(flat, SIDE).reshape(*grey.shape[:-2], SIDE, SIDE)


@dataclass(frozen=True, slots=True)
class Signals:
    """Signals of one video of ``T`` frames.

    Attributes:
        small: ``[T, 1024]`` small frames.
        lum: ``[T]`` mean of each.
        sd: ``[T]`` standard deviation of each.
        step: ``[T - 1]`` mean absolute difference of neighbours.
        jump: ``[T - 1]`` the same as a multiple of what is usual around it.
        turn: ``[T - 1]`` how much better a frame fits to the one before turned by 180 degrees
            than to that one as it was, as a difference of correlations.
        detail: ``[T]`` logarithm of the Laplacian's standard deviation, at full resolution.
    """

    small: Floats
    lum: Floats
    sd: Floats
    step: Floats
    jump: Floats
    turn: Floats
    detail: Floats

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self.small)

    def apart(self, i: int, j: int) -> float:
        """Return the mean absolute difference of two frames."""
        return float(np.abs(self.small[i] - self.small[j]).mean())

    def lagged(self, lag: int) -> Floats:
        """Return ``[T - lag]``: the mean absolute difference of frames ``i`` and ``i + lag``."""
        found: Floats = np.abs(self.small[lag:] - self.small[: len(self) - lag]).mean(axis=1)
        return found


def signals_of(clip: Tensor) -> Signals:
    """Return the signals of a clip ``[T, 3, H, W]`` in [0, 1]."""
    grey = grey_levels(clip)
    small: Floats = small_frames(grey).flatten(1).double().cpu().numpy()
    step = np.abs(np.diff(small, axis=0)).mean(axis=1)
    return Signals(
        small=small,
        lum=small.mean(axis=1),
        sd=small.std(axis=1),
        step=step,
        jump=step / (usual(step) + FLOOR),
        turn=_turn(small),
        detail=_detail(grey),
    )


def usual(values: Floats, reach: int = NEIGHBOURS) -> Floats:
    """Return ``[n]``: the median of up to ``reach`` neighbours on each side, itself left out."""
    count = len(values)
    if count < 2:
        return np.zeros(count)
    padded = np.full(count + 2 * reach, np.nan)
    padded[reach : reach + count] = values
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1).copy()
    windows[:, reach] = np.nan
    medians: Floats = np.nanmedian(windows, axis=1)
    return medians


def _turn(small: Floats) -> Floats:
    """Return the correlation with the frame before turned round, minus that with it as it was.

    A negative correlation with the frame as it was counts as none: it tells that the frame is
    another one, and not that it is the same one turned. So does a weak one with the turned frame.
    """
    centred = small - small.mean(axis=1, keepdims=True)
    norms = np.sqrt((centred**2).sum(axis=1))
    scale = norms[1:] * norms[:-1] + 1e-6
    straight = (centred[1:] * centred[:-1]).sum(axis=1) / scale
    # The pixels of a frame in the opposite order are the frame turned by 180 degrees.
    turned = (centred[1:] * centred[:-1, ::-1]).sum(axis=1) / scale
    difference = turned - np.maximum(straight, 0)
    alike: Floats = np.where(turned > _ALIKE, difference, np.minimum(difference, 0))
    return alike


def _detail(grey: Tensor) -> Floats:
    """Return ``[T]`` from ``[T, H, W]``; a frame without any detail has the logarithm of 0.1."""
    if min(grey.shape[1:]) < 3:
        return np.full(len(grey), np.log(0.1))
    inner = grey[:, 1:-1, 1:-1]
    around = grey[:, 2:, 1:-1] + grey[:, :-2, 1:-1] + grey[:, 1:-1, 2:] + grey[:, 1:-1, :-2]
    laplacian = (around - 4 * inner).flatten(1).double()
    deviation: Floats = laplacian.std(dim=1, correction=0).cpu().numpy()
    return np.log(deviation + 0.1)
