"""Building a classifier of the zoo."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

import torch
from vcr_core.errors import ComponentUnavailable

from vcr_models.nets.memory import recompute
from vcr_models.zoo.catalog import catalog
from vcr_models.zoo.classifier import ZooClassifier
from vcr_models.zoo.front import Front
from vcr_models.zoo.labels import label_space

if TYPE_CHECKING:
    from torch import nn
    from vcr_core.specs import WeightSpec

    from vcr_models.zoo.catalog import Variant
    from vcr_models.zoo.classifier import Layout
    from vcr_models.zoo.params import ZooParams


class Library(Protocol):
    """What a module of ``zoo/libraries`` offers."""

    def network(self, variant: Variant, size: int | None = None) -> nn.Module:
        """Return the network, with weights of no meaning; nothing is fetched.

        Args:
            variant: which one.
            size: side of a crop where it is not the published one, for networks that take others.
        """
        ...

    def load(self, network: nn.Module, variant: Variant, file: Path, params: ZooParams) -> None:
        """Fill the network from a file, every key of which must have its place."""
        ...


def library(name: str) -> Library:
    """Return the module that builds networks of a library."""
    module = importlib.import_module(f"vcr_models.zoo.libraries.{name.replace('-', '_')}")
    return cast("Library", module)


def build(params: ZooParams, weights: WeightSpec) -> ZooClassifier:
    """Build a classifier with the weights in ``weights.file``.

    Raises:
        ComponentUnavailable: if there is no file, or it does not fit the network exactly.
    """
    variant = catalog()[weights.recipe]
    if not weights.file:
        raise ComponentUnavailable(f"{variant.ref} has no weight file here")
    source = library(variant.library)
    # Constructors draw weights that the file replaces; nobody else's draws may depend on that.
    with torch.random.fork_rng(devices=[]):
        network = source.network(variant)
    source.load(network, variant, Path(weights.file), params)
    # What the file does not hold, such as tables of positions.
    network.to(getattr(torch, params.precision))
    if params.recompute and not recompute(network, on=True):
        raise ComponentUnavailable(
            f"{variant.ref}: recompute is there for networks written here; set it to false"
        )
    return classifier(variant, network, crops=params.crops)


def unfilled(params: ZooParams, weights: WeightSpec) -> ZooClassifier:
    """Build a classifier with weights of no meaning, to measure what it costs."""
    variant = catalog()[weights.recipe]
    with torch.random.fork_rng(devices=[]):
        network = library(variant.library).network(variant)
        meta = {key: t for key, t in network.state_dict().items() if t.is_meta}
        drawn = {key: torch.rand(t.shape).to(t.dtype) * 0.01 for key, t in meta.items()}
    if drawn:
        network.load_state_dict(drawn, strict=False, assign=True)
    recompute(network, on=params.recompute)
    return classifier(variant, network, crops=params.crops)


def classifier(variant: Variant, network: nn.Module, *, crops: int = 0) -> ZooClassifier:
    """Put a network of a variant behind the contract.

    Args:
        variant: what it is.
        network: filled.
        crops: crops of a clip; 0 = as published.
    """
    clip = replace(variant.clip, crops=crops or variant.crops)
    front = Front(variant.resize, variant.size, clip.crops, variant.mean, variant.std)
    layout = cast("Layout", "NCTHW" if variant.layout == "slow-fast" else variant.layout)
    labels = label_space(variant.label_space)
    return ZooClassifier(network, labels, clip, front, layout, variant.ref)
