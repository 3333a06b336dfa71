"""Classification networks that learned metrics stand on, read from local files."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch
from vcr_core.errors import ComponentUnavailable

if TYPE_CHECKING:
    from torch import Tensor

BACKBONES: Final = {
    "alex": ("alexnet-owt-7be5be79.pth", "7be5be79"),
    "vgg": ("vgg16-397923af.pth", "397923af"),
}
"""torchvision's file of each backbone and how its SHA-256 begins."""


def backbone_file(metric: str, net: str, given: str) -> Path:
    """Return where a backbone is; nothing is downloaded.

    Args:
        metric: who asks, for the message.
        net: key of :data:`BACKBONES`.
        given: a path, or ``""`` for torch's hub cache.

    Raises:
        ComponentUnavailable: if it is not there.
    """
    name, _ = BACKBONES[net]
    folder = Path(torch.hub.get_dir()) / "checkpoints"
    file = Path(given).expanduser() if given else folder / name
    if not file.is_file():
        raise ComponentUnavailable(
            f"metric {metric!r} needs backbone weights: {file} does not exist; put torchvision's "
            f"{name} there, or set backbone = 'path/to/{name}'"
        )
    return file


def backbone_state(metric: str, net: str, file: Path) -> dict[str, Tensor]:
    """Return the tensors of a backbone's file by torchvision's names, on the CPU.

    Any other weights, random ones too, would give plausible numbers that mean nothing, so the file
    is compared with the published hash.

    Raises:
        ComponentUnavailable: if it is another file.
    """
    name, expected = BACKBONES[net]
    with file.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    if not found.startswith(expected):
        raise ComponentUnavailable(
            f"metric {metric!r}: {file} is not torchvision's {name} "
            f"(its SHA-256 begins {found[:8]}, not {expected}); with other weights the value "
            "means nothing"
        )
    # The file is known by its hash, and nothing but tensors is read from it.
    state: Any = torch.load(file, map_location="cpu", weights_only=True)  # noqa: TID251
    return dict(state)


def layer(metric: str, file: Path, state: dict[str, Tensor], key: str) -> Tensor:
    """Return one tensor of a backbone.

    Raises:
        ComponentUnavailable: if the file lacks it.
    """
    if key not in state:
        raise ComponentUnavailable(f"metric {metric!r}: {file} lacks {key}")
    return state[key]
