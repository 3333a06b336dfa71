"""Video diffusion models of diffusers, read from a folder."""

from __future__ import annotations

import math
import weakref
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch
from vcr_core.errors import ComponentUnavailable

from vcr_defenses.diffusion import schedule as sched
from vcr_defenses.diffusion.denoiser import eps_in_parts
from vcr_defenses.diffusion.frame_model import find_frame_model, load_frame_model, torch_dtype
from vcr_defenses.diffusion.latent import KlLatents, RearrangedPixels, Space, VideoModel
from vcr_defenses.diffusion.model_folder import has_part, load_part, model_folder, read_config

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch import Tensor

    from vcr_defenses.diffusion.schedule import NoiseSchedule
    from vcr_defenses.params.diffusion import VideopureParams

_FRAMES = "UNet2DModel"
_VIDEOS = "UNet3DConditionModel"


def find_video_model(source: str, asking: str) -> Path:
    """Return where a model is, after a look at what it says of itself; weights are not read.

    Args:
        source: bundled name, folder, or hub name whose files are in the local cache.
        asking: who needs it, for messages.

    Raises:
        ComponentUnavailable: if it is not on this machine or is something else.
    """
    folder = model_folder(source, asking)
    config = read_config(folder, "unet", asking)
    kind = config.get("_class_name")
    if kind == _FRAMES:
        find_frame_model(source, asking)
    elif kind == _VIDEOS:
        scheduler = read_config(folder, "scheduler", asking, "scheduler_config.json")
        _to_eps(scheduler, _levels(scheduler, source, asking), asking)
        if not has_part(folder, "vae"):
            _pixel_ratio(config, source, asking)
    else:
        raise ComponentUnavailable(
            f"{asking}: {source} is a {kind}; known: {_VIDEOS} and, for single frames, {_FRAMES}"
        )
    return folder


_loaded: weakref.WeakValueDictionary[tuple[object, ...], VideoModel] = weakref.WeakValueDictionary()


def load_video_model(params: VideopureParams, asking: str) -> VideoModel:
    """Return the model that the parameters name; defenses that use the same one share it.

    Without a ``vae`` the model is one of pixels. Without a ``text_encoder`` the text is zeros.

    Args:
        params: ``denoiser``, ``dtype``, ``frame_chunk``, ``prompt`` and ``variant`` count.
        asking: who needs it, for messages.

    Raises:
        ComponentUnavailable: if it is not on this machine or does not fit.
    """
    p = params
    key = (p.denoiser, p.dtype, p.frame_chunk, p.prompt, p.variant)
    model = _loaded.get(key)
    if model is None:
        folder = find_video_model(p.denoiser, asking)
        of_frames = read_config(folder, "unet", asking).get("_class_name") == _FRAMES
        load = _frame_by_frame if of_frames else _of_videos
        model = _loaded[key] = load(folder, p, asking)
    return model


def _frame_by_frame(folder: Path, params: VideopureParams, asking: str) -> VideoModel:
    if params.prompt:
        _refuse_prompt(folder, asking)
    info = find_frame_model(params.denoiser, asking)
    model = load_frame_model(info, torch_dtype(params.dtype), asking)
    scheduler = read_config(folder, "scheduler", asking, "scheduler_config.json")

    @torch.no_grad()
    def noise(latents: Tensor, t: int) -> Tensor:
        frames = latents[0].transpose(0, 1)
        return eps_in_parts(model, frames, t, params.frame_chunk).transpose(0, 1).unsqueeze(0)

    return VideoModel(
        RearrangedPixels(),
        noise,
        info.schedule,
        offset=int(scheduler.get("steps_offset", 0)),
        multiple=info.multiple,
        move=model.to,
    )


def _of_videos(folder: Path, params: VideopureParams, asking: str) -> VideoModel:
    from diffusers import UNet3DConditionModel

    dtype = torch_dtype(params.dtype)
    scheduler = read_config(folder, "scheduler", asking, "scheduler_config.json")
    levels = _levels(scheduler, params.denoiser, asking)
    to_eps = _to_eps(scheduler, levels, asking)
    unet = load_part(folder, "unet", UNet3DConditionModel, dtype, asking, params.variant)
    width = int(unet.config.cross_attention_dim)
    noise = VideoUnet(unet, text_states(folder, width, params.prompt, asking).to(dtype))
    return VideoModel(
        _space(folder, params, dtype, asking),
        lambda latents, t: to_eps(noise(latents, t), latents, t),
        levels,
        offset=int(scheduler.get("steps_offset", 0)),
        move=noise.to,
    )


class VideoUnet:
    """A ``UNet3DConditionModel`` under one text.

    Args:
        unet: the network.
        text: ``[1, L, D]`` encoded text, of the network's dtype.
    """

    def __init__(self, unet: Any, text: Tensor) -> None:
        self._unet = unet
        self._text = text

    @torch.no_grad()
    def __call__(self, latents: Tensor, t: int) -> Tensor:
        """Return the network's output for ``[1, C, T, h, w]``, float32."""
        step = torch.tensor([t], device=latents.device)
        out = self._unet(latents.to(self._text.dtype), step, encoder_hidden_states=self._text)
        result: Tensor = out.sample.float()
        return result

    def to(self, device: torch.device) -> None:
        """Move to ``device``."""
        self._unet.to(device)
        self._text = self._text.to(device)


def text_states(folder: Path, width: int, prompt: str, asking: str) -> Tensor:
    """Return the text that the network attends to, ``[1, L, width]`` float32.

    Args:
        folder: the model.
        width: what the network expects; zeros of it where the model has no text encoder.
        prompt: the text.
        asking: who needs it, for messages.

    Raises:
        ComponentUnavailable: if there is a prompt but no text encoder, or transformers is missing.
    """
    if not has_part(folder, "text_encoder"):
        if prompt:
            _refuse_prompt(folder, asking)
        return torch.zeros(1, 1, width)
    try:
        transformers: Any = import_module("transformers")
    except ImportError as error:
        raise ComponentUnavailable(
            f"{asking}: {folder} has a text encoder, which needs transformers: "
            "pip install 'vcr-defenses[diffusion]'"
        ) from error
    local = {"pretrained_model_name_or_path": str(folder), "local_files_only": True}
    try:
        tokenizer: Any = transformers.CLIPTokenizer.from_pretrained(**local, subfolder="tokenizer")
        encoder: Any = transformers.CLIPTextModel.from_pretrained(**local, subfolder="text_encoder")
    except (OSError, ValueError) as error:
        raise ComponentUnavailable(
            f"{asking}: text encoder of {folder} cannot be loaded: {error}"
        ) from error
    tokens = tokenizer(
        prompt,
        padding="max_length",
        max_length=tokenizer.model_max_length,
        truncation=True,
        return_tensors="pt",
    )
    with torch.no_grad():
        states: Tensor = encoder.eval().float()(tokens.input_ids)[0]
    return states


def _space(folder: Path, params: VideopureParams, dtype: torch.dtype, asking: str) -> Space:
    if not has_part(folder, "vae"):
        config = read_config(folder, "unet", asking)
        return RearrangedPixels(_pixel_ratio(config, params.denoiser, asking))
    from diffusers import AutoencoderKL

    vae = load_part(folder, "vae", AutoencoderKL, dtype, asking, params.variant)
    return KlLatents(vae, params.frame_chunk)


def _pixel_ratio(config: dict[str, Any], source: str, asking: str) -> int:
    channels = int(config["in_channels"])
    ratio = math.isqrt(channels // 3)
    if 3 * ratio**2 != channels:
        raise ComponentUnavailable(
            f"{asking}: {source} has no vae, and {channels} channels are no square blocks of RGB "
            "pixels (3, 12, 27, …)"
        )
    return ratio


def _levels(scheduler: dict[str, Any], source: str, asking: str) -> NoiseSchedule:
    try:
        return sched.from_config(scheduler)
    except ValueError as error:
        raise ComponentUnavailable(f"{asking}: scheduler of {source}: {error}") from error


def _to_eps(
    scheduler: dict[str, Any], levels: NoiseSchedule, asking: str
) -> Callable[[Tensor, Tensor, int], Tensor]:
    """Return a function of output, latents and step to the noise that the output means."""
    prediction = scheduler.get("prediction_type", "epsilon")
    if prediction == "epsilon":
        return lambda out, latents, t: out
    if prediction == "v_prediction":
        return lambda out, latents, t: sched.eps_of_velocity(latents, out, levels.abar(t))
    if prediction == "sample":
        return lambda out, latents, t: sched.eps_of_x0(latents, out, levels.abar(t))
    raise ComponentUnavailable(
        f"{asking}: prediction_type {prediction!r} is not known; "
        "known: epsilon, v_prediction, sample"
    )


def _refuse_prompt(folder: Path, asking: str) -> None:
    raise ComponentUnavailable(
        f"{asking}: {folder} has no text_encoder, so defense.prompt has to be empty"
    )
