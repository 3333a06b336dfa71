"""Models that stay loaded from one run of a sweep to the next."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import TYPE_CHECKING

from vcr_core.components import build, weights_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from vcr_core.config.experiment import Chosen
    from vcr_core.protocols import VideoClassifier

KEPT = 2
"""Models that are kept: a sweep goes model by model, and a transfer asks two."""


class ModelShelf:
    """Models by what determines them, the last :data:`KEPT` of them."""

    def __init__(self) -> None:
        self._models: OrderedDict[str, VideoClassifier] = OrderedDict()

    def model(self, chosen: Chosen, folders: Sequence[Path] = ()) -> VideoClassifier:
        """Return the model of a reference, as built; from the shelf if it is there."""
        key = _key(chosen, folders)
        if key not in self._models:
            while len(self._models) >= KEPT:
                self._models.popitem(last=False)  # before the next one takes its memory
            self._models[key] = build(chosen, folders)
        self._models.move_to_end(key)
        return self._models[key]

    def clear(self) -> None:
        """Forget all of them: something has changed one."""
        self._models.clear()


def _key(chosen: Chosen, folders: Sequence[Path]) -> str:
    weights = weights_of(chosen, folders)
    sha256 = weights.sha256 if weights else ""
    return json.dumps([chosen.qualified, chosen.version, chosen.params, sha256], sort_keys=True)
