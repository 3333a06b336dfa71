"""A network of the user's in a TorchScript or ``torch.export`` file."""

from __future__ import annotations

import pickle
import warnings
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

import torch
from torch import nn
from vcr_core.datasets.motion.labels import MOTION_LABELS, label_space_id
from vcr_core.errors import ComponentUnavailable, ConfigError
from vcr_core.protocols import LabelSpace
from vcr_core.specs import ClipSpec

from vcr_models.zoo.classifier import ZooClassifier
from vcr_models.zoo.front import Front
from vcr_models.zoo.labels import label_space

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor
    from vcr_core.specs import WeightSpec

    from vcr_models.files.params import NetworkFileParams

FLOOR = 1e-12
"""Smallest probability whose logarithm is taken."""


def build(params: NetworkFileParams, weights: WeightSpec) -> ZooClassifier:
    """Read the file and put it behind the contract.

    Raises:
        ComponentUnavailable: if the file is neither TorchScript nor ``torch.export``, or damaged.
        ConfigError: if the labels cannot be read.
    """
    if any(value <= 0 for value in params.std):
        raise ConfigError(f"model.std: must be above 0, found {list(params.std)}")
    if max(*params.mean, *params.std) > 2:
        raise ConfigError("model.mean, model.std: pixels are in [0, 1] here; divide them by 255")
    network = NetworkFile(read_network(Path(weights.file)), params.output, params.batch)
    clip = ClipSpec(
        frames=params.frames,
        stride=params.stride,
        clips=params.clips,
        crops=params.crops,
        policy=params.policy,
        size=params.size,
    )
    front = Front(params.resize or params.size, params.size, params.crops, params.mean, params.std)
    name = Path(params.file).name
    return ZooClassifier(network, read_labels(params.labels), clip, front, params.layout, name)


def read_labels(text: str) -> LabelSpace:
    """Return the classes that ``labels`` names, or those of a text file.

    Raises:
        ConfigError: if it names neither.
    """
    if text in ("kinetics400", "ssv2", "ucf101"):
        return label_space(text)
    if text == "motion":
        return LabelSpace(label_space_id("motion"), MOTION_LABELS)
    path = Path(text).expanduser()
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"model.labels: {text!r} is none of kinetics400, ssv2, ucf101, motion, and as a text "
            f"file it cannot be read: {error}"
        ) from error
    names = tuple(line.strip() for line in lines if line.strip())
    if len(set(names)) != len(names) or not names:
        raise ConfigError(f"model.labels: {path} must have one different class name a line")
    return LabelSpace("custom", names)


def read_network(path: Path) -> nn.Module:
    """Return the network in a file, in evaluation mode.

    Raises:
        ComponentUnavailable: if there is none.
    """
    try:
        names = zipfile.ZipFile(path).namelist()
    except (OSError, zipfile.BadZipFile) as error:
        raise ComponentUnavailable(
            f"{path} is no TorchScript and no torch.export file ({error})"
        ) from error
    is_script = any(name.endswith("/constants.pkl") for name in names) and any(
        "/code/" in name for name in names
    )
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r".*torch\.jit")
            if is_script:
                module: nn.Module = torch.jit.load(str(path), map_location="cpu")  # type: ignore[no-untyped-call]
                return module.eval()
            exported: nn.Module = torch.export.load(path).module()
            return exported
    except (RuntimeError, ValueError, KeyError, OSError, pickle.UnpicklingError) as error:
        text = str(error).strip().splitlines()[0][:200]
        raise ComponentUnavailable(
            f"{path} cannot be read as a TorchScript or torch.export file: {text}"
        ) from error


class NetworkFile(nn.Module):
    """The network, with logits and any number of clips.

    Args:
        network: takes normalised clips and returns ``[N, classes]``.
        output: ``logits`` or ``probabilities``, whose logarithm is returned.
        batch: clips at once; 0 = any number.
    """

    def __init__(self, network: nn.Module, output: str, batch: int) -> None:
        super().__init__()
        self.network, self.output, self.batch = network, output, batch
        for module in network.modules():
            # Exported graphs refuse eval(); which mode they are in was decided at export.
            module.training = False

    def train(self, mode: bool = True) -> Self:
        """Stay in evaluation mode."""
        del mode
        self.training = False
        return self

    def forward(self, clips: Tensor) -> Tensor:
        """Return logits ``[N, classes]``."""
        run: Callable[[Tensor], Tensor] = self.network
        if self.batch:
            found = torch.cat([self._padded(run, part) for part in torch.split(clips, self.batch)])
        else:
            found = run(clips)
        return found.clamp(min=FLOOR).log() if self.output == "probabilities" else found

    def _padded(self, run: Callable[[Tensor], Tensor], part: Tensor) -> Tensor:
        missing = self.batch - len(part)
        if missing:
            part = torch.cat((part, part[-1:].expand(missing, *part.shape[1:])))
        return run(part)[: self.batch - missing]
