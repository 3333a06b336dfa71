"""Predictions of a group of videos, with what the defenses tell of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vcr_core.prediction import corner

if TYPE_CHECKING:
    from torch import Tensor

ABSTAINED = -1
"""Stands for a class where a defense refused to name one."""


@dataclass(frozen=True, slots=True)
class Draw:
    """One prediction of a group: ``[B, K]`` log-probabilities, and what the defenses tell."""

    scores: Tensor
    told: list[dict[str, Any]]

    def predicted(self) -> list[int]:
        """Return a class for each video, ``ABSTAINED`` where the defense made no prediction."""
        guesses = self.scores.argmax(dim=1).tolist()
        return [
            ABSTAINED if facts.get("abstained") else guess
            for guess, facts in zip(guesses, self.told, strict=True)
        ]

    def corner(self, i: int, label: int) -> dict[str, Any]:
        """Return the record of one video's prediction."""
        facts = {**corner(self.scores[i], label), **self.told[i]}
        if facts.get("abstained"):
            facts["pred"] = facts["p_pred"] = None
        return facts
