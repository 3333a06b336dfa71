"""Shift-tolerant LPIPS, from the weights that its package ships."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch
import torch.nn.functional as F
from vcr_core.errors import ComponentUnavailable
from vcr_core.weights.places import file_name, find

from vcr_metrics.backbones import network_state, release
from vcr_metrics.learned import LearnedMetric
from vcr_metrics.params import StLpipsParams
from vcr_metrics.weights import SHIFT_TOLERANT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

_MEAN: Final = (0.485, 0.456, 0.406)
_STD: Final = (0.229, 0.224, 0.225)
_TINY: Final = 1e-10

# Positions of a stage's convolutions; what stands before its first one, and its padding.
_ALEX: Final = (((0,), 2), ((5,), 2), ((9,), 1), ((11,), 1), ((13,), 1))
_VGG: Final = (((0, 2), 1), ((6, 8), 1), ((12, 14, 16), 1), ((20, 22, 24), 1), ((28, 30, 32), 1))


class StLpips(LearnedMetric):
    """Shift-tolerant LPIPS, the mean over frames; 0 for equal ones. It is not LPIPS.

    Ghildyal and Liu, ECCV 2022: the distance of LPIPS on networks whose every reduction is
    blurred first. The package of the authors brings backbones and heads; the forward pass is ours,
    because importing the package needs two it does not ask for.

    Raises:
        ComponentUnavailable: if the package's file of weights is not there.
    """

    key = "st-lpips"
    smallest = 24

    def __init__(self, params: StLpipsParams | None = None) -> None:
        self.params = params or StLpipsParams()
        weights = SHIFT_TOLERANT[self.params.net]
        file = find(weights)
        if file is None:
            raise ComponentUnavailable(
                f"metric {self.key!r} needs {file_name(weights)} of stlpips-pytorch "
                "(pip install 'vcr-metrics[st-lpips]')"
            )
        self.file = file
        self.by = f"{release('stlpips-pytorch')}, {file.name}"
        self._state: dict[str, Tensor] = {}

    def frames(self, one: Tensor, other: Tensor) -> Tensor:
        """Return ``[n]`` for pictures ``[n, 3, H, W]`` in [0, 1], differentiable."""
        return self.compare(self.features(one), self.features(other))

    def compare(self, one: Sequence[Tensor], other: Sequence[Tensor]) -> Tensor:
        """Return ``[n]``: the weighted squared distance of the maps of :meth:`features`."""
        state = self._weights(other[0].device)
        score = other[0].new_zeros(len(other[0]))
        for number, (first, second) in enumerate(zip(one, other, strict=True)):
            head = state[f"lin{number}.model.1.weight"]
            score = score + F.conv2d((first - second).square(), head).mean(dim=(1, 2, 3))
        return score

    def features(self, pictures: Tensor) -> list[Tensor]:
        """Return the maps of the five stages, ``[n, c, h, w]``, of unit length over channels."""
        mean, std = (pictures.new_tensor(v).view(3, 1, 1) for v in (_MEAN, _STD))
        x = (pictures - mean) / std
        maps = self._alex(x) if self.params.net == "alex" else self._vgg(x)
        # The root of 0 has no gradient, and maps after a rectifier have places that are 0.
        squares = [m.square().sum(dim=1, keepdim=True).clamp_min(_TINY**2) for m in maps]
        return [m / (square.sqrt() + _TINY) for m, square in zip(maps, squares, strict=True)]

    def _alex(self, x: Tensor) -> list[Tensor]:
        maps: list[Tensor] = []
        for number, ((at,), padding) in enumerate(_ALEX):
            if number in (1, 2):
                x = blur_pool(F.max_pool2d(x, 3, stride=1))
            x = self._convolve(x, number, at, padding)
            x = (blur_pool(x) if number == 0 else x).relu()
            maps.append(x)
        return maps

    def _vgg(self, x: Tensor) -> list[Tensor]:
        maps: list[Tensor] = []
        for number, (positions, padding) in enumerate(_VGG):
            if number:
                x = blur_pool(F.max_pool2d(x, 2, stride=1))
            for at in positions:
                x = self._convolve(x, number, at, padding).relu()
            maps.append(x)
        return maps

    def _convolve(self, x: Tensor, stage: int, at: int, padding: int) -> Tensor:
        state, name = self._weights(x.device), f"net.slice{stage + 1}.{at}"
        return F.conv2d(x, state[f"{name}.weight"], state[f"{name}.bias"], padding=padding)

    def _weights(self, device: torch.device) -> dict[str, Tensor]:
        if not self._state:
            self._state = network_state(self.key, SHIFT_TOLERANT[self.params.net], self.file)
        if self._state["net.slice1.0.weight"].device != device:
            self._state = {name: tensor.to(device) for name, tensor in self._state.items()}
        return self._state


def blur_pool(x: Tensor) -> Tensor:
    """Return every second place of the blurred maps; two mirrored places are added on each side.

    Args:
        x: ``[n, c, h, w]``, sides above 2.
    """
    taps = torch.tensor([1.0, 2.0, 1.0], dtype=x.dtype, device=x.device) / 4
    kernel = torch.outer(taps, taps).expand(x.shape[1], 1, 3, 3)
    # Padding by torch has no deterministic gradient on GPUs.
    x = torch.cat([x[..., 1:3].flip(-1), x, x[..., -3:-1].flip(-1)], dim=-1)
    x = torch.cat([x[..., 1:3, :].flip(-2), x, x[..., -3:-1, :].flip(-2)], dim=-2)
    return F.conv2d(x, kernel, stride=2, groups=x.shape[1])
