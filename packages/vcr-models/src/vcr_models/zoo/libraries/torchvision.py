"""torchvision's video models: they take ``[N, 3, T, H, W]`` and return logits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcr_models.zoo.state import load_strictly, read_state

if TYPE_CHECKING:
    from pathlib import Path

    from torch import nn

    from vcr_models.zoo.catalog import Variant
    from vcr_models.zoo.params import ZooParams


def network(variant: Variant, size: int | None = None) -> nn.Module:
    """Return the network; multiscale ones are fixed to their size."""
    del size
    from torchvision.models import get_model

    made: nn.Module = get_model(variant.network, weights=None, num_classes=variant.classes)
    return made


def load(network: nn.Module, variant: Variant, file: Path, params: ZooParams) -> None:
    """Fill a network from the official file."""
    load_strictly(
        network,
        read_state(file, variant.roots, trust_pickle=params.trust_pickle),
        file,
        precision=params.precision,
    )
