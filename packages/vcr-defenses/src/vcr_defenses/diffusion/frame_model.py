"""Diffusion models of single frames: where one is, what it says of itself, and the network."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from vcr_core.errors import ComponentUnavailable

from vcr_defenses.diffusion import schedule as sched
from vcr_defenses.diffusion.guided_checkpoint import (
    guided_file,
    guided_schedule,
    is_guided,
    load_guided,
)
from vcr_defenses.diffusion.guided_unet import GuidedShape
from vcr_defenses.diffusion.model_folder import has_part, load_part, model_folder, read_config

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from vcr_defenses.diffusion.schedule import NoiseSchedule

PREDICTIONS = ("epsilon", "v_prediction", "sample")


@dataclass(frozen=True, slots=True)
class FrameModelInfo:
    """What is known of a model before its weights are read.

    Attributes:
        source: what the user called it.
        path: its folder, or its file.
        schedule: levels of its training steps.
        size: side it was trained at, ``None`` if it does not say.
        multiple: height and width have to be multiples of this.
        prediction: what its output means, one of ``PREDICTIONS``.
    """

    source: str
    path: Path
    schedule: NoiseSchedule
    size: int | None
    multiple: int
    prediction: str = "epsilon"


class FrameModel:
    """A :class:`~vcr_defenses.diffusion.denoiser.Denoiser` of frames ``[N, 3, H, W]``.

    Args:
        info: what it says of itself.
        network: from images and a step to its output, of which the first three channels count;
            further ones are a learned variance.
        module: what holds the parameters; frozen here.
    """

    def __init__(
        self,
        info: FrameModelInfo,
        network: Callable[[Tensor, int], Tensor],
        module: torch.nn.Module,
    ) -> None:
        self.info = info
        self._network = network
        self._module = module.eval().requires_grad_(requires_grad=False)

    @property
    def schedule(self) -> NoiseSchedule:
        """The levels of its training steps."""
        return self.info.schedule

    @property
    def size(self) -> int | None:
        """Side it was trained at, ``None`` if it does not say."""
        return self.info.size

    @property
    def multiple(self) -> int:
        """Height and width have to be multiples of this."""
        return self.info.multiple

    def predict_eps(self, x_t: Tensor, t: int) -> Tensor:
        """Return the predicted noise of ``[N, 3, H, W]``, with a graph to ``x_t``."""
        dtype = next(self._module.parameters()).dtype
        out = self._network(x_t.to(dtype), t)[:, :3].to(x_t.dtype)
        if self.info.prediction == "epsilon":
            return out
        convert = sched.eps_of_x0 if self.info.prediction == "sample" else sched.eps_of_velocity
        return convert(x_t, out, self.schedule.abar(t))

    def to(self, device: torch.device | str) -> Self:
        """Move to ``device`` and return the model."""
        self._module.to(device)
        return self


def find_frame_model(source: str, asking: str) -> FrameModelInfo:
    """Return what a model says of itself; its weights are not read.

    Args:
        source: bundled name, folder, hub name whose files are in the local cache, or checkpoint of
            guided-diffusion. A folder's configuration files lie in ``unet/`` and ``scheduler/``,
            or side by side.
        asking: who needs it, for messages.

    Raises:
        ComponentUnavailable: if it is not on this machine or is something else.
    """
    if is_guided(source):
        shape = GuidedShape()
        return FrameModelInfo(
            source=source,
            path=guided_file(source, asking),
            schedule=guided_schedule(),
            size=shape.size,
            multiple=2 ** (len(shape.multipliers) - 1),
        )
    folder = model_folder(source, asking)
    part = _unet_part(folder)
    config = read_config(folder, part, asking)
    scheduler = read_config(folder, "scheduler" if part else "", asking, "scheduler_config.json")
    kind = config.get("_class_name")
    if kind != "UNet2DModel" or config.get("in_channels") != 3:
        raise ComponentUnavailable(
            f"{asking}: {source} is a {kind} of {config.get('in_channels')} channels; "
            "what is needed is a UNet2DModel of RGB images"
        )
    if config.get("num_class_embeds") or config.get("class_embed_type"):
        raise ComponentUnavailable(
            f"{asking}: {source} wants to be told the class of the picture; "
            "a purifier needs an unconditional model"
        )
    prediction = str(scheduler.get("prediction_type", "epsilon"))
    if prediction not in PREDICTIONS:
        raise ComponentUnavailable(
            f"{asking}: {source} has prediction_type {prediction!r}; "
            f"known: {', '.join(PREDICTIONS)}"
        )
    try:
        levels = sched.from_config(scheduler)
    except ValueError as error:
        raise ComponentUnavailable(f"{asking}: scheduler of {source}: {error}") from error
    size = config.get("sample_size")
    return FrameModelInfo(
        source=source,
        path=folder,
        schedule=levels,
        size=max(size) if isinstance(size, list) else size,
        multiple=2 ** (len(config["block_out_channels"]) - 1),
        prediction=prediction,
    )


_loaded: weakref.WeakValueDictionary[tuple[Path, torch.dtype], FrameModel] = (
    weakref.WeakValueDictionary()
)


def load_frame_model(info: FrameModelInfo, dtype: torch.dtype, asking: str) -> FrameModel:
    """Return the model with its weights; two defenses that use the same one share it.

    Raises:
        ComponentUnavailable: if the weights are not there or do not fit.
    """
    key = (info.path, dtype)
    model = _loaded.get(key)
    if model is None:
        model = _loaded[key] = _load(info, dtype, asking)
    return model


def _load(info: FrameModelInfo, dtype: torch.dtype, asking: str) -> FrameModel:
    if info.path.is_file():
        guided = load_guided(info.path, dtype, asking)
        return FrameModel(info, guided, guided)
    from diffusers import UNet2DModel

    unet = load_part(info.path, _unet_part(info.path), UNet2DModel, dtype, asking)

    def network(images: Tensor, step: int) -> Tensor:
        out: Tensor = unet(images, step).sample
        return out

    return FrameModel(info, network, unet)


def _unet_part(folder: Path) -> str:
    """Return where the network is: older models have no folder of its own for it."""
    return "unet" if has_part(folder, "unet") else ""


def torch_dtype(name: str) -> torch.dtype:
    """Return the dtype that a parameter names."""
    dtype: Any = getattr(torch, name)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"{name!r} is no dtype")
    return dtype
