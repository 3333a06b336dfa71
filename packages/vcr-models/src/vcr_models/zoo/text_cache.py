"""Features of the texts of classes, kept on disk: thousands of texts take minutes on a CPU."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from vcr_core.atomic import replacing
from vcr_core.folders import cache_folder
from vcr_core.weights.places import digest

if TYPE_CHECKING:
    from pathlib import Path

    from vcr_models.nets.clip_blocks import Texts, TextTower


def known_texts(texts: Texts, tower: TextTower, file: Path) -> None:
    """Give ``texts`` their features: those that were kept for this file, else new ones.

    What is kept depends on the weights, the texts and the precision, and may be deleted.

    Args:
        texts: to be filled.
        tower: with the weights of ``file``.
        file: the checkpoint.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file, save_file

    rows = texts.rows.cpu().contiguous()
    dtype = tower.text_projection.dtype
    key = hashlib.sha256(digest(file).encode() + rows.numpy().tobytes() + str(dtype).encode())
    place = cache_folder() / "texts" / f"{key.hexdigest()[:32]}.safetensors"
    try:
        kept = load_file(place)["features"] if place.is_file() else None
    except (SafetensorError, KeyError, OSError):
        kept = None
    if kept is not None and kept.shape[:-1] == rows.shape[:-1] and kept.dtype == dtype:
        texts.features = kept
        return
    found = texts.known(tower).contiguous()
    place.parent.mkdir(parents=True, exist_ok=True)
    with replacing(place) as temporary:
        save_file({"features": found}, temporary)
