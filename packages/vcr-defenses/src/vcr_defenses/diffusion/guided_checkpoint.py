"""Checkpoints of OpenAI's guided-diffusion: files of tensors without a configuration."""

from __future__ import annotations

from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any, Final

import torch
from vcr_core.errors import ComponentUnavailable

from vcr_defenses.diffusion import schedule as sched
from vcr_defenses.diffusion.guided_unet import GuidedShape, GuidedUNet

if TYPE_CHECKING:
    from vcr_defenses.diffusion.schedule import NoiseSchedule

PUBLISHED: Final = "guided-diffusion-256"
"""Name of the model of ImageNet that DiffPure and FreqPure use."""

_FILE: Final = "256x256_diffusion_uncond.pt"
_URL: Final = f"https://openaipublic.blob.core.windows.net/diffusion/jul-2021/{_FILE}"


def is_guided(source: str) -> bool:
    """Return whether a denoiser's name means a checkpoint of guided-diffusion."""
    return source == PUBLISHED or source.endswith((".pt", ".pth"))


def guided_file(source: str, asking: str) -> Path:
    """Return where a checkpoint lies; the published one in torch's hub cache.

    Raises:
        ComponentUnavailable: if it is not there, with where to get it.
    """
    published = source == PUBLISHED
    hub = Path(torch.hub.get_dir()) / "checkpoints" / _FILE
    file = hub if published else Path(source).expanduser()
    if not file.is_file():
        hint = (
            f"put {_URL} (2.2 GB) there"
            if published
            else f"or set defense.denoiser = {PUBLISHED!r}"
        )
        raise ComponentUnavailable(f"{asking}: there is no file {file}; {hint}")
    return file


def guided_schedule() -> NoiseSchedule:
    """Return the schedule that these models were trained with: 1000 linear steps."""
    return sched.from_betas(sched.linear_betas(1e-4, 0.02, 1000))


def load_guided(
    file: Path, dtype: torch.dtype, asking: str, shape: GuidedShape | None = None
) -> GuidedUNet:
    """Return the network with the tensors of a checkpoint, each of which has to fit.

    Args:
        file: written with ``torch.save``; nothing but tensors is read from it.
        dtype: of the network.
        asking: who needs it, for messages.
        shape: sizes of the network, those of the published model if absent.

    Raises:
        ComponentUnavailable: if the file is no such checkpoint.
    """
    try:
        state: Any = torch.load(file, map_location="cpu", weights_only=True)  # noqa: TID251
        # Without memory of its own until the tensors of the file take its place.
        with torch.device("meta"):
            network = GuidedUNet(shape)
        network.load_state_dict(state, strict=True, assign=True)
    except (OSError, EOFError, UnpicklingError, RuntimeError, TypeError) as error:
        reason = str(error).strip().splitlines()[:2]
        raise ComponentUnavailable(
            f"{asking}: {file} is no unconditional 256 x 256 checkpoint of guided-diffusion: "
            f"{' '.join(line.strip() for line in reason)}"
        ) from error
    return network.to(dtype)
