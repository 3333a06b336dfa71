"""Diffusion models as folders on this machine; nothing is ever downloaded.

A folder is laid out as diffusers' pipelines are: ``unet/``, ``scheduler/`` and, for latent models,
``vae/``, ``text_encoder/`` and ``tokenizer/``.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from vcr_core.errors import ComponentUnavailable
from vcr_core.weights.hub import cached_checkpoint

if TYPE_CHECKING:
    import torch

BUNDLED = ("motion-video", "motion-ddpm")
"""Small models of the generated data set inside this distribution."""


def model_folder(source: str, asking: str) -> Path:
    """Return where a model lies.

    Args:
        source: name of a bundled model, a folder, or a name on the Hugging Face hub whose files are
            in the local cache.
        asking: who needs it, for messages.

    Raises:
        ComponentUnavailable: if it is not on this machine, with how to bring it here.
    """
    if source in BUNDLED:
        return Path(str(files("vcr_defenses") / "weights" / source))
    folder = Path(source).expanduser()
    if folder.is_dir():
        return folder
    if folder.is_absolute() or source.startswith((".", "~")) or source.count("/") != 1:
        raise ComponentUnavailable(
            f"{asking}: there is no folder {folder}; name a folder in diffusers' layout, a model "
            f"of the Hugging Face hub as owner/name, or one of {', '.join(BUNDLED)}"
        )
    return cached_checkpoint(source, who=asking, key="defense.denoiser")


def has_part(folder: Path, part: str) -> bool:
    """Return whether a model has a component."""
    return (folder / part).is_dir()


def read_config(folder: Path, part: str, asking: str, name: str = "") -> dict[str, Any]:
    """Return the configuration of a component.

    Args:
        folder: the model.
        part: name of the component; ``""`` where its files are in the folder itself.
        asking: who needs it, for messages.
        name: of the file, if it is not the component's usual one.

    Raises:
        ComponentUnavailable: if the folder lacks it or it is not JSON.
    """
    name = name or ("scheduler_config.json" if part == "scheduler" else "config.json")
    file = folder / part / name
    try:
        return cast("dict[str, Any]", json.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise ComponentUnavailable(
            f"{asking}: {folder} is no diffusion model in diffusers' layout: "
            f"{Path(part) / name} is missing"
        ) from error
    except ValueError as error:
        raise ComponentUnavailable(f"{asking}: {file} is not valid JSON: {error}") from error


def load_part(
    folder: Path, part: str, kind: Any, dtype: torch.dtype, asking: str, variant: str = ""
) -> Any:
    """Return a frozen component in evaluation mode, on the CPU.

    Args:
        folder: the model.
        part: name of the component.
        kind: its class, with ``from_pretrained``.
        dtype: of its parameters.
        asking: who needs it, for messages.
        variant: middle part of the weights' file name, for instance ``fp16``.

    Raises:
        ComponentUnavailable: if its files are not there or are of another class.
    """
    try:
        module = kind.from_pretrained(
            str(folder),
            subfolder=part or None,
            torch_dtype=dtype,
            variant=variant or None,
            local_files_only=True,
            # Loading in pieces needs accelerate, which is not required.
            low_cpu_mem_usage=False,
        )
    except (OSError, ValueError, RuntimeError) as error:
        hint = f"; defense.variant is {variant!r}" if variant else ""
        raise ComponentUnavailable(
            f"{asking}: {part} of {folder} cannot be loaded as {kind.__name__}{hint}: {error}"
        ) from error
    return module.eval().requires_grad_(False)
