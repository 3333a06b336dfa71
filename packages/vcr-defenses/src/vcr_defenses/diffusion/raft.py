"""RAFT of torchvision as an estimator of flow between two frames.

Teed & Deng, "RAFT: recurrent all-pairs field transforms for optical flow", ECCV 2020.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import pad
from vcr_core.errors import ComponentUnavailable
from vcr_core.weights.reading import read_checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

UPDATES = 10
"""Refinements of the flow, as the VideoPure code asks for."""


def load_raft(
    method: str, weights: str, device: torch.device
) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function of two frames ``[3, h, w]`` in [0, 1] to a flow ``[2, h, w]``.

    The weights are torchvision's ``C_T_V2``, trained on FlyingChairs and FlyingThings3D.

    Args:
        method: ``raft-large`` or ``raft-small``.
        weights: their file, ``""`` for torch's hub cache. Nothing is downloaded.
        device: where the network runs.

    Raises:
        ComponentUnavailable: if torchvision or the file is not there, or the file is not RAFT's.
    """
    file = find_raft(method, weights)
    models = _models(method)
    network = (models.raft_large if method == "raft-large" else models.raft_small)(weights=None)
    state = read_checkpoint(file)
    try:
        network.load_state_dict(state)
    except RuntimeError as error:
        raise ComponentUnavailable(
            f"flow {method!r}: {file} does not hold torchvision's weights of it"
        ) from error
    return estimator(network.eval().requires_grad_(False).to(device))


def find_raft(method: str, given: str = "") -> Path:
    """Return the file of a network's weights.

    Args:
        method: ``raft-large`` or ``raft-small``.
        given: the file, ``""`` for torch's hub cache.

    Raises:
        ComponentUnavailable: if torchvision or the file is not there.
    """
    models = _models(method)
    kinds = models.Raft_Large_Weights, models.Raft_Small_Weights
    url = kinds[method == "raft-small"].C_T_V2.url
    name = url.rsplit("/", 1)[-1]
    folder = Path(torch.hub.get_dir()) / "checkpoints"
    file = Path(given).expanduser() if given else folder / name
    if not file.is_file():
        raise ComponentUnavailable(
            f"flow {method!r} needs weights: {file} does not exist; put torchvision's {name} "
            f"({url}) there, name the file with defense.flow_weights = 'path/to/{name}', "
            "or do without: defense.flow = 'zero' or 'ilk'"
        )
    return file


def estimator(network: Callable[..., Any]) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a RAFT network as a function of two frames of any size of 128 pixels or more."""

    @torch.no_grad()
    def pair(first: Tensor, second: Tensor) -> Tensor:
        height, width = first.shape[-2:]
        margins = (0, -width % 8, 0, -height % 8)
        # The network was trained on [-1, 1].
        images = [pad(2 * f[None] - 1, margins, mode="replicate") for f in (first, second)]
        flow: Tensor = network(*images, num_flow_updates=UPDATES)[-1][0]
        return flow[:, :height, :width]

    return pair


def _models(method: str) -> Any:
    try:
        return import_module("torchvision.models.optical_flow")
    except ImportError as error:
        raise ComponentUnavailable(
            f"flow {method!r} needs torchvision: pip install torchvision, "
            "or set defense.flow = 'zero', which needs nothing"
        ) from error
