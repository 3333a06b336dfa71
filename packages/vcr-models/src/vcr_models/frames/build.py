"""Building classifiers of single frames."""

from __future__ import annotations

from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import torch
from vcr_core.errors import ComponentUnavailable
from vcr_core.protocols import LabelSpace
from vcr_core.weights.places import find, verify
from vcr_core.weights.reading import read_checkpoint

from vcr_models.frames.classifier import FramesClassifier
from vcr_models.specs.frames import CLIP, LABEL_SPACE

if TYPE_CHECKING:
    from torch import nn
    from vcr_core.specs import WeightSpec

# Pixels are (level - 127) / 128 in the training of the Lite networks, unlike in that of others.
_MEAN: Final = (127 / 255,) * 3
_STD: Final = (128 / 255,) * 3


def build(weights: WeightSpec) -> FramesClassifier:
    """Build the classifier that a set of weights describes.

    Args:
        weights: ``recipe`` is what the package ``efficientnet-lite-pytorch`` calls the network,
            ``url`` its checkpoint in another package.

    Raises:
        ComponentUnavailable: if the file is not here, or not the published one.
    """
    file = find(weights)
    if file is None:
        raise ComponentUnavailable(f"imagenet-frames.{weights.variant} has no weight file here")
    verify(weights, file)
    library = import_module("efficientnet_lite_pytorch")
    # The constructor draws weights that the file replaces; nobody else's draws may depend on that.
    with torch.random.fork_rng(devices=[]):
        network: nn.Module = library.EfficientNet.from_name(weights.recipe)
    network.load_state_dict(read_checkpoint(file))
    return FramesClassifier(
        network, imagenet1k(), CLIP, short_side=256, size=224, mean=_MEAN, std=_STD
    )


def imagenet1k() -> LabelSpace:
    """Return the 1000 classes of ImageNet-1k in the order of published heads.

    Names are the usual short ones, of which no two are the same.
    """
    text = files("vcr_models").joinpath("labels", "imagenet1k.txt").read_text(encoding="utf-8")
    return LabelSpace(LABEL_SPACE, tuple(text.splitlines()))
