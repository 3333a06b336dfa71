"""DISTS: structure and texture similarity of VGG features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch
import torch.nn.functional as F
from vcr_core.errors import ComponentUnavailable
from vcr_core.weights.places import find

from vcr_metrics.backbones import backbone_file, layer, network_state, release
from vcr_metrics.learned import LearnedMetric
from vcr_metrics.params import DistsParams
from vcr_metrics.weights import DISTS_SHARES, VGG16

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch import Tensor

_STAGES: Final = ((0, 2), (5, 7), (10, 12, 14), (17, 19, 21), (24, 26, 28))
"""Positions of VGG16's convolutions in torchvision's ``features``, by stage."""

_CHANNELS: Final = (3, 64, 128, 256, 512, 512)
_MEAN: Final = (0.485, 0.456, 0.406)
_STD: Final = (0.229, 0.224, 0.225)
_TINY: Final = 1e-6


class Dists(LearnedMetric):
    """Deep image structure and texture similarity, the mean over frames; 0 for equal ones.

    Ding, Ma, Wang, Simoncelli, TPAMI 44(5), 2022, equations (4) to (7), at the frames' own size.
    The package of the authors brings the weights of structure and texture; VGG16 is torchvision's,
    from ``params.backbone``, the folder of ``vcr weights`` or torch's hub cache, compared with its
    published hash. Nothing is downloaded.

    Args:
        params: file of the backbone.
        folders: where it is looked for first.

    Raises:
        ComponentUnavailable: if a file of weights is not there.
    """

    key = "dists"
    smallest = 16

    def __init__(self, params: DistsParams | None = None, folders: Sequence[Path] = ()) -> None:
        self.params = params or DistsParams()
        self.file = backbone_file(self.key, VGG16, self.params.backbone, folders)
        self.by = f"{release('dists-pytorch')}, {self.file.name}"
        self._weights: Weights | None = None

    def frames(self, one: Tensor, other: Tensor) -> Tensor:
        """Return ``[n]`` for pictures ``[n, 3, H, W]`` in [0, 1], differentiable."""
        if self._weights is None:
            self._weights = Weights(self.file)
        weights = self._weights.to(other.device)
        score = other.new_zeros(len(other))
        pairs = zip(weights.maps(one), weights.maps(other), strict=True)
        for (first, second), alpha, beta in zip(pairs, weights.alpha, weights.beta, strict=True):
            texture, structure = similarities(first, second)
            score = score + (alpha * texture + beta * structure).sum(dim=1)
        return 1 - score


class Weights:
    """VGG16's convolutions, and the share of every feature map in texture and structure.

    Args:
        file: torchvision's state of VGG16.
    """

    def __init__(self, file: Path) -> None:
        state = network_state(Dists.key, VGG16, file)
        self.layers = [
            [
                tuple(
                    layer(Dists.key, file, state, f"features.{at}.{part}")
                    for part in ("weight", "bias")
                )
                for at in stage
            ]
            for stage in _STAGES
        ]
        alpha, beta = mixing_weights()
        total = alpha.sum() + beta.sum()
        self.alpha = torch.split(alpha / total, list(_CHANNELS))
        self.beta = torch.split(beta / total, list(_CHANNELS))

    def to(self, device: torch.device) -> Weights:
        """Move everything to ``device`` and return this object."""
        if self.alpha[0].device != device:
            self.layers = [[tuple(t.to(device) for t in c) for c in s] for s in self.layers]
            self.alpha = tuple(part.to(device) for part in self.alpha)
            self.beta = tuple(part.to(device) for part in self.beta)
        return self

    def maps(self, pictures: Tensor) -> list[Tensor]:
        """Return the pictures and the maps of the five stages, each ``[n, c, h, w]``."""
        mean, std = (pictures.new_tensor(v).view(3, 1, 1) for v in (_MEAN, _STD))
        found, x = [pictures], (pictures - mean) / std
        for number, stage in enumerate(self.layers):
            if number:
                x = l2_pool(x)
            for weight, bias in stage:
                x = F.conv2d(x, weight, bias, padding=1).relu()
            found.append(x)
        return found


def similarities(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Return texture and structure similarity of each map, both ``[n, c]``; equations (5), (6).

    Args:
        first: maps ``[n, c, h, w]``.
        second: the same shape.
    """
    one, other = first.mean(dim=(2, 3)), second.mean(dim=(2, 3))
    texture = (2 * one * other + _TINY) / (one.square() + other.square() + _TINY)
    centred_one, centred_other = first - one[..., None, None], second - other[..., None, None]
    spread = centred_one.square().mean(dim=(2, 3)) + centred_other.square().mean(dim=(2, 3))
    covariance = (centred_one * centred_other).mean(dim=(2, 3))
    return texture, (2 * covariance + _TINY) / (spread + _TINY)


def l2_pool(x: Tensor) -> Tensor:
    """Return the root of the blurred square of every second place; equation (4)."""
    taps = torch.tensor([1.0, 2.0, 1.0], dtype=x.dtype, device=x.device) / 4
    kernel = torch.outer(taps, taps).expand(x.shape[1], 1, 3, 3)
    blurred = F.conv2d(x.square(), kernel, stride=2, padding=1, groups=x.shape[1])
    return (blurred + 1e-12).sqrt()


def mixing_weights() -> tuple[Tensor, Tensor]:
    """Return alpha and beta, ``[1475]`` each, from the package of the authors.

    Raises:
        ComponentUnavailable: if the package lacks them.
    """
    # Found, not imported: importing it takes seconds, and it looks for the file elsewhere.
    file = find(DISTS_SHARES)
    if file is None:
        raise ComponentUnavailable(
            "metric 'dists' needs weights.pt of dists-pytorch (pip install 'vcr-metrics[dists]')"
        )
    state = network_state(Dists.key, DISTS_SHARES, file)
    return state["alpha"].detach().flatten(), state["beta"].detach().flatten()
