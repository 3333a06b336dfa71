"""LPIPS through the official package, with a backbone from a local file."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from vcr_core.seeding import isolated_random_state

from vcr_metrics.backbones import backbone_file, backbone_state, layer
from vcr_metrics.learned import LearnedMetric
from vcr_metrics.params import LpipsParams

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor, nn


class Lpips(LearnedMetric):
    """Learned perceptual image patch similarity, version 0.1, the mean over frames.

    Zhang, Isola, Efros, Shechtman, Wang, CVPR 2018, equation (1), at the frames' own size. The
    package brings the linear heads only; the backbone is torchvision's, from ``params.backbone`` or
    torch's hub cache, compared with its published hash. Nothing is downloaded.

    Raises:
        ComponentUnavailable: if the backbone's file is not there.
    """

    key = "lpips"
    smallest = 32

    def __init__(self, params: LpipsParams | None = None) -> None:
        self.params = params or LpipsParams()
        self.file = backbone_file(self.key, self.params.net, self.params.backbone)
        self._network: nn.Module | None = None

    def frames(self, one: Tensor, other: Tensor) -> Tensor:
        """Return ``[n]`` for pictures ``[n, 3, H, W]`` in [0, 1], differentiable."""
        if self._network is None:
            self._network = load_network(self.params.net, self.file)
        network = self._network.to(other.device)
        values: Tensor = network(one, other, normalize=True)
        return values.flatten()


def load_network(net: str, file: Path) -> nn.Module:
    """Return the frozen network with heads and backbone.

    Args:
        net: ``alex`` or ``vgg``.
        file: torchvision's state of the classifier of that name.

    Raises:
        ComponentUnavailable: if the file has another hash or lacks a layer.
    """
    from lpips import LPIPS  # type: ignore[import-untyped,unused-ignore]

    state = backbone_state(Lpips.key, net, file)
    # Without a download the constructor draws a random backbone, which is replaced at once.
    with isolated_random_state(0), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        network: nn.Module = LPIPS(net=net, pnet_rand=True, verbose=False)
    backbone: Any = network.net
    backbone.load_state_dict(
        {
            key: layer(Lpips.key, file, state, f"features.{key.partition('.')[2]}")
            for key in backbone.state_dict()
        }
    )
    return network.eval().requires_grad_(False)
