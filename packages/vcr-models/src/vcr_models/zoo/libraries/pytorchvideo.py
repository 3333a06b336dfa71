"""pytorchvideo's hub models; only its ``models`` can be imported beside a current torchvision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch
from torch import nn

from vcr_models.zoo.state import load_strictly, read_state

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    from vcr_models.zoo.catalog import Variant
    from vcr_models.zoo.params import ZooParams

SLOWER: Final = 4
ENDS_IN_SOFTMAX: Final = ("x3d_", "r2plus1d_")
"""Heads that end with a softmax unless told otherwise; here every model returns logits."""


class TwoSpeeds(nn.Module):
    """A SlowFast network that makes its slow pathway itself: every fourth frame, ends included."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, clips: Tensor) -> Tensor:
        """Return logits of ``[N, 3, T, H, W]``."""
        frames = clips.shape[2]
        chosen = torch.linspace(0, frames - 1, frames // SLOWER, device=clips.device).long()
        found: Tensor = self.network([clips[:, :, chosen], clips])
        return found


def network(variant: Variant, size: int | None = None) -> nn.Module:
    """Return the network; pools are made for the training crop, so smaller sizes fail."""
    del size
    from pytorchvideo.models import hub

    arguments: dict[str, Any] = {}
    if variant.network.startswith(ENDS_IN_SOFTMAX):
        arguments["head_activation"] = None
    made: nn.Module = getattr(hub, variant.network)(pretrained=False, **arguments)
    return TwoSpeeds(made) if variant.layout == "slow-fast" else made


def load(network: nn.Module, variant: Variant, file: Path, params: ZooParams) -> None:
    """Fill a network from the official file."""
    inner = network.network if isinstance(network, TwoSpeeds) else network
    load_strictly(
        inner,
        read_state(file, variant.roots, trust_pickle=params.trust_pickle),
        file,
        precision=params.precision,
    )
