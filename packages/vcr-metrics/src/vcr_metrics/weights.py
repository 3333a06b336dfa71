"""Files of the networks that learned metrics stand on; data only."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from vcr_core.specs import WeightSpec

_TORCHVISION: Final = "https://download.pytorch.org/models/"
_STLPIPS: Final = "package:stlpips_pytorch/weights/vST0.0/"


def _imagenet(net: str, file: str, size: int) -> WeightSpec:
    return WeightSpec(
        variant=net,
        url=_TORCHVISION + file,
        sha256=file.removesuffix(".pth").rpartition("-")[2],
        bytes=size,
        license="BSD-3-Clause",
    )


# Sizes have the digits that torchvision publishes.
BACKBONES: Final = {
    "alex": _imagenet("alex", "alexnet-owt-7be5be79.pth", 244_409_000),
    "vgg": _imagenet("vgg", "vgg16-397923af.pth", 553_434_000),
    "squeeze": _imagenet("squeeze", "squeezenet1_1-b8a52dc0.pth", 4_959_000),
}
"""torchvision's classifiers, which LPIPS can stand on."""

VGG16: Final = replace(BACKBONES["vgg"], variant="")
"""The only one for metrics without a choice; what they have learned belongs to its channels."""

SHIFT_TOLERANT: Final = {
    "alex": WeightSpec(
        variant="alex",
        url=_STLPIPS + "alex_shift_tolerant.pth",
        sha256="b356b382f96010f77d085ee8343ecd9fd322d0a56e8de2b2d0549fafcad8b9ee",
        bytes=9_899_296,
        license="BSD-2-Clause",
    ),
    "vgg": WeightSpec(
        variant="vgg",
        url=_STLPIPS + "vgg_shift_tolerant.pth",
        sha256="44597da68f49c1837c100ff52299050f274d102eb102e5837178c79be6f0e250",
        bytes=58_907_298,
        license="BSD-2-Clause",
    ),
}
"""Backbones and heads of ST-LPIPS, as its package brings them."""

DISTS_SHARES: Final = WeightSpec(
    url="package:DISTS_pytorch/weights.pt",
    sha256="f5e65c96230b7f6ca995691647d482237e4cab8a50c5c4a5784f219ef0748218",
    bytes=12_288,
    license="MIT",
)
"""How much every feature map counts in DISTS, as its package brings them."""
