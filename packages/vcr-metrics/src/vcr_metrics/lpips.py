"""LPIPS through the official package, with a backbone from a local file."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import torch.nn.functional as F
from vcr_core.seeding import isolated_random_state

from vcr_metrics.backbones import backbone_file, layer, network_state, release
from vcr_metrics.learned import LearnedMetric
from vcr_metrics.params import LpipsParams, LpipsVcrbenchParams
from vcr_metrics.weights import BACKBONES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch import Tensor, nn

_VCRBENCH_SIDE = 224


class Lpips(LearnedMetric):
    """Learned perceptual image patch similarity, version 0.1, the mean over frames.

    Zhang, Isola, Efros, Shechtman, Wang, CVPR 2018, equation (1), at the frames' own size. The
    package brings the linear heads only; the backbone is torchvision's, from ``params.backbone``,
    the folder of ``vcr weights`` or torch's hub cache, compared with its published hash. Nothing is
    downloaded.

    Args:
        params: backbone and its file.
        folders: where the file is looked for first.

    Raises:
        ComponentUnavailable: if the backbone's file is not there.
    """

    key = "lpips"
    smallest = 32

    def __init__(self, params: LpipsParams | None = None, folders: Sequence[Path] = ()) -> None:
        self.params = params or LpipsParams()
        net = self.params.net
        self.file = backbone_file(self.ref(net), BACKBONES[net], self.params.backbone, folders)
        self.by = f"{release('lpips')}, {self.params.net}, {self.file.name}"
        self._network: nn.Module | None = None

    def ref(self, net: str) -> str:
        """Return what ``vcr weights`` knows the file of a backbone by."""
        return f"{self.key}.{net}"

    def frames(self, one: Tensor, other: Tensor) -> Tensor:
        """Return ``[n]`` for pictures ``[n, 3, H, W]`` in [0, 1], differentiable."""
        if self._network is None:
            self._network = load_network(self.params.net, self.file)
        network = self._network.to(other.device)
        values: Tensor = network(one, other, normalize=True)
        return values.flatten()


class LpipsVcrbench(Lpips):
    """LPIPS as in the VCR-Bench tables: VGG16, frames shrunk to at most 224 pixels a side.

    Bilinear without smoothing, sides rounded down, as the benchmark's code does before it calls
    the VGG variant of another package, whose heads are those of version 0.1. Not comparable with
    ``lpips``.
    """

    key = "lpips-vcrbench"
    smallest = 16

    def __init__(
        self, params: LpipsVcrbenchParams | None = None, folders: Sequence[Path] = ()
    ) -> None:
        backbone = params.backbone if params else ""
        super().__init__(LpipsParams(net="vgg", backbone=backbone), folders)

    def ref(self, net: str) -> str:
        """Return the name of the metric: there is one backbone only."""
        return self.key

    def seen(self, frames: Tensor) -> Tensor:
        """Return the frames, the longer side at most 224 pixels."""
        longer = max(frames.shape[-2:])
        if longer <= _VCRBENCH_SIDE:
            return frames
        scale = _VCRBENCH_SIDE / longer
        height, width = (max(1, int(side * scale)) for side in frames.shape[-2:])
        return F.interpolate(frames, (height, width), mode="bilinear", align_corners=False)


def load_network(net: str, file: Path) -> nn.Module:
    """Return the frozen network with heads and backbone.

    Args:
        net: ``alex``, ``vgg`` or ``squeeze``.
        file: torchvision's state of the classifier of that name.

    Raises:
        ComponentUnavailable: if the file has another hash or lacks a layer.
    """
    from lpips import LPIPS  # type: ignore[import-untyped,unused-ignore]

    state = network_state(Lpips.key, BACKBONES[net], file)
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
