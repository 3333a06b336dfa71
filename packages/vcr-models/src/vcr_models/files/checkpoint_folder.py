"""Where a checkpoint of transformers lies on this machine; nothing is downloaded."""

from __future__ import annotations

from pathlib import Path

from vcr_core.errors import ComponentUnavailable
from vcr_core.weights.hub import cached_checkpoint


def checkpoint_folder(name: str, revision: str, who: str) -> Path:
    """Return the folder of a checkpoint.

    Args:
        name: a folder, or ``owner/name`` of a checkpoint in the local Hugging Face cache.
        revision: branch, tag or commit of a name in the cache.
        who: which model asks, for messages.

    Raises:
        ComponentUnavailable: with what to do, if it is not here.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if folder.is_absolute() or name.startswith((".", "~")) or name.count("/") != 1:
        raise ComponentUnavailable(
            f"{who}: there is no folder {folder}; set model.checkpoint to the folder of a "
            "transformers checkpoint, or to the owner/name of one in the local Hugging Face cache"
        )
    return cached_checkpoint(name, who=who, key="model.checkpoint", revision=revision)
