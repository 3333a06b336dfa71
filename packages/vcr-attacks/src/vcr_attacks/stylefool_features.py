"""Features whose Gram matrices say what a picture's style is: VGG19, or filters without weights."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol

import torch
import torch.nn.functional as F
from vcr_core.errors import ComponentUnavailable, IncompatibleComponents
from vcr_core.weights.places import digest
from vcr_core.weights.reading import read_checkpoint

if TYPE_CHECKING:
    from torch import Tensor

VGG19_FILE: Final = "vgg19-dcbb9e9d.pth"
VGG19_SHA256: Final = "dcbb9e9d"
"""torchvision's file of VGG19's weights and how its SHA-256 begins."""

_CONVOLUTIONS: Final = ((0, 2), (5, 7), (10, 12, 14, 16), (19, 21, 23, 25), (28,))
"""Positions of the convolutions up to relu5_1 in torchvision's ``features``, by stage."""

_STYLE: Final = frozenset({0, 5, 10, 19, 28})
_CONTENT: Final = 21
_MEAN: Final = (0.485, 0.456, 0.406)
_STD: Final = (0.229, 0.224, 0.225)
_LEVELS: Final = 255 * 0.226
"""Levels of 8 bits in one unit of the network's input, on the mean over its channels."""


class Features(Protocol):
    """What a style transfer compares.

    Attributes:
        smallest: shorter side of a frame in pixels below which there is nothing to compare.
    """

    smallest: int

    def __call__(self, pictures: Tensor) -> tuple[list[Tensor], Tensor]:
        """Return maps of style by layer, and the map of content, each ``[n, c, h, w]``.

        Args:
            pictures: ``[n, 3, H, W]`` in [0, 1].
        """
        ...

    def to(self, device: torch.device) -> Features:
        """Move to ``device`` and return this object."""
        ...


def make_features(name: Literal["vgg19", "filters"], weights: str) -> Features:
    """Return the features of a name.

    Args:
        name: ``vgg19`` or ``filters``.
        weights: torchvision's file of VGG19, or ``""`` for torch's hub cache.

    Raises:
        ComponentUnavailable: if the file is not there or is another one.
    """
    return Vgg19(vgg19_file(weights)) if name == "vgg19" else Filters()


def vgg19_file(given: str) -> Path:
    """Return where VGG19's weights are; nothing is downloaded.

    Args:
        given: a path, or ``""`` for torch's hub cache.

    Raises:
        ComponentUnavailable: if they are not there, with how to get them.
    """
    folder = Path(torch.hub.get_dir()) / "checkpoints"
    file = Path(given).expanduser() if given else folder / VGG19_FILE
    if not file.is_file():
        raise ComponentUnavailable(
            f"attack 'stylefool' compares styles by VGG19: {file} does not exist; put "
            f"torchvision's {VGG19_FILE} (550 MB) there: pip install 'vcr-attacks[stylefool]', "
            "then python -c 'from torchvision.models import VGG19_Weights as w; "
            "w.IMAGENET1K_V1.get_state_dict(check_hash=True)'; or name the file with "
            f"attack.weights = 'path/to/{VGG19_FILE}'; or do without it: "
            "attack.features = 'filters' or attack.styliser = 'statistics'"
        )
    return file


class Vgg19:
    """VGG19's maps relu1_1 to relu5_1 for style and relu4_2 for content, in units of levels.

    Simonyan, Zisserman, ICLR 2015; the layers are those of Gatys, Ecker, Bethge, CVPR 2016. Reading
    waits for the first use.

    Args:
        file: torchvision's state of VGG19.
    """

    smallest = 16

    def __init__(self, file: Path) -> None:
        self.file = file
        self._layers: list[list[tuple[int, Tensor, Tensor]]] = []
        self._device = torch.device("cpu")

    def to(self, device: torch.device) -> Vgg19:
        """Move to ``device`` and return this object."""
        if device != self._device:
            self._layers = [
                [(at, weight.to(device), bias.to(device)) for at, weight, bias in stage]
                for stage in self._layers
            ]
            self._device = device
        return self

    def __call__(self, pictures: Tensor) -> tuple[list[Tensor], Tensor]:
        """Return five maps of style and one of content; see :class:`Features`.

        Raises:
            ComponentUnavailable: if the file is another one.
        """
        if not self._layers:
            self._read()
        mean, std = (pictures.new_tensor(v).view(3, 1, 1) for v in (_MEAN, _STD))
        styles: list[Tensor] = []
        x, content = (pictures - mean) / std, pictures
        for number, stage in enumerate(self._layers):
            if number:
                x = F.max_pool2d(x, 2)
            for at, weight, bias in stage:
                x = F.conv2d(x, weight, bias, padding=1).relu()
                if at in _STYLE:
                    styles.append(x * _LEVELS)
                if at == _CONTENT:
                    content = x * _LEVELS
        return styles, content

    def _read(self) -> None:
        found = digest(self.file)
        if not found.startswith(VGG19_SHA256):
            raise ComponentUnavailable(
                f"attack 'stylefool': {self.file} is not torchvision's {VGG19_FILE} (its SHA-256 "
                f"begins {found[:8]}, not {VGG19_SHA256})"
            )
        state = read_checkpoint(self.file)
        self._layers = [
            [
                (
                    at,
                    state[f"features.{at}.weight"].to(self._device),
                    state[f"features.{at}.bias"].to(self._device),
                )
                for at in stage
            ]
            for stage in _CONVOLUTIONS
        ]


class Filters:
    """Oriented edges and bars of a picture's opponent colours at several scales.

    A fixed, small stand-in for a trained network, in the manner of steerable pyramids: Gaussian
    derivatives of first and second order in four orientations, on brightness, red-green and
    blue-yellow, half-wave rectified, at scales 1, 1/2, 1/4 and 1/8. Their Gram matrices hold which
    edges and colours occur together; content is the blurred brightness and its edges at half size.
    """

    smallest = 8
    _SCALES: Final = 4
    _STYLE_SCALE: Final = 1500.0
    _CONTENT_SCALE: Final = 1000.0

    def __init__(self) -> None:
        self._bank = _derivatives()
        self._colours = torch.tensor(
            [[1 / 3, 1 / 3, 1 / 3], [1 / 2, -1 / 2, 0.0], [1 / 4, 1 / 4, -1 / 2]]
        )

    def to(self, device: torch.device) -> Filters:
        """Move to ``device`` and return this object."""
        self._bank, self._colours = self._bank.to(device), self._colours.to(device)
        return self

    def __call__(self, pictures: Tensor) -> tuple[list[Tensor], Tensor]:
        """Return up to four maps of style and one of content; see :class:`Features`."""
        x = torch.einsum("kc,nchw->nkhw", self._colours, pictures - 0.5)
        styles: list[Tensor] = []
        content = x
        for scale in range(self._SCALES):
            if scale:
                if min(x.shape[-2:]) < 2 * self.smallest:
                    break
                x = F.avg_pool2d(x, 2)
            edges = self._edges(x)
            styles.append(self._STYLE_SCALE * torch.cat([x, edges.relu(), (-edges).relu()], dim=1))
            if scale <= 1:
                content = self._CONTENT_SCALE * torch.cat(
                    [F.avg_pool2d(x[:, :1], 3, stride=1, padding=1), edges[:, : len(self._bank)]],
                    dim=1,
                )
        return styles, content

    def _edges(self, x: Tensor) -> Tensor:
        """Return responses ``[n, 3 * filters, h, w]``, those of brightness first."""
        count, channels, height, width = x.shape
        reach = self._bank.shape[-1] // 2
        padded = F.pad(x.reshape(-1, 1, height, width), (reach,) * 4, mode="replicate")
        return F.conv2d(padded, self._bank).view(count, channels * len(self._bank), height, width)


def check_size(features: Features, height: int, width: int) -> None:
    """Raise :class:`IncompatibleComponents` for frames that are too small for the features."""
    if min(height, width) < features.smallest:
        raise IncompatibleComponents(
            f"stylefool: {type(features).__name__} needs frames of at least {features.smallest} "
            f"pixels a side, these are {height}x{width}; set attack.styliser = 'statistics'"
        )


def gram(maps: Tensor) -> Tensor:
    """Return ``F F^T / (C H W)`` of maps ``[n, C, H, W]``, ``[n, C, C]``."""
    flat = maps.flatten(2)
    return flat @ flat.transpose(1, 2) / (flat.shape[1] * flat.shape[2])


def _derivatives(side: int = 7, spread: float = 1.2) -> Tensor:
    """Return ``[8, 1, side, side]``: first and second derivatives of a Gaussian, four ways each."""
    half = side // 2
    y, x = torch.meshgrid(*(torch.arange(-half, half + 1.0),) * 2, indexing="ij")
    bell = torch.exp(-(x**2 + y**2) / (2 * spread**2))
    bell = bell / bell.sum()
    kernels = []
    for order in (1, 2):
        for turn in range(4):
            angle = turn * math.pi / 4
            along = math.cos(angle) * x + math.sin(angle) * y
            kernel = along * bell if order == 1 else (along**2 / spread**2 - 1) * bell
            kernel = kernel - kernel.mean()
            kernels.append(kernel / kernel.abs().sum())
    return torch.stack(kernels).unsqueeze(1)
