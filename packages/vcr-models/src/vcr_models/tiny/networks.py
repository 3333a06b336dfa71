"""Which network class belongs to which bundled weight file, and how a file is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from safetensors.torch import load

from vcr_models.tiny.r2plus1d import TinyR2plus1d
from vcr_models.tiny.r3d import TinyR3d
from vcr_models.tiny.slowfast import TinySlowFast
from vcr_models.tiny.swin import TinySwin
from vcr_models.tiny.timesformer import TinyTimeSformer
from vcr_models.tiny.tsm import TinyTsm
from vcr_models.tiny.uniformer import TinyUniFormer
from vcr_models.tiny.vit import TinyVit
from vcr_models.tiny.x3d import TinyX3d

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

NETWORKS: Final[dict[str, Callable[[int], nn.Module]]] = {
    "tiny-r3d": TinyR3d,
    "tiny-r3d.adv": TinyR3d,
    "tiny-r2plus1d": TinyR2plus1d,
    "tiny-tsm": TinyTsm,
    "tiny-vit": TinyVit,
    "tiny-slowfast": TinySlowFast,
    "tiny-uniformer": TinyUniFormer,
    "tiny-x3d": TinyX3d,
    "tiny-timesformer": TinyTimeSformer,
    "tiny-swin": TinySwin,
}
"""Weight name to network class; a variant after the dot shares its network with the plain name."""

NUM_CLASSES: Final = 16


def build_network(name: str, weights: bytes | None = None) -> nn.Module:
    """Make a network, with trained weights if their file's content is given.

    Args:
        name: key of ``NETWORKS``.
        weights: content of a ``.safetensors`` file whose names and shapes match exactly.

    Returns:
        In training mode without weights; with weights frozen and in evaluation mode.

    Raises:
        ValueError: unknown name.
        RuntimeError: a tensor is missing, is left over or has another shape.
    """
    if name not in NETWORKS:
        msg = f"unknown tiny network {name!r}; expected one of {', '.join(NETWORKS)}"
        raise ValueError(msg)
    network = NETWORKS[name](NUM_CLASSES)
    if weights is not None:
        network.load_state_dict(load(weights), strict=True)
        network.eval()
        network.requires_grad_(False)
    return network
