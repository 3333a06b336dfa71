"""The smallest success of each video, for attacks that search on after the first one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.threat import ThreatModel
    from vcr_core.victim import Victim


def l2(change: Tensor) -> Tensor:
    """Return the L2 norm ``[b]`` of changes ``[b, T, C, H, W]``."""
    size: Tensor = change.flatten(1).norm(dim=1)
    return size


def linf(change: Tensor) -> Tensor:
    """Return the largest absolute value ``[b]`` of changes ``[b, T, C, H, W]``."""
    return change.abs().flatten(1).amax(dim=1)


def l21(change: Tensor) -> Tensor:
    """Return the sum over frames of their L2 norms ``[b]``, of changes ``[b, T, C, H, W]``."""
    size: Tensor = change.flatten(2).norm(dim=2).sum(dim=1)
    return size


class Smallest:
    """Keeps the smallest of the successes it is offered, measured as they would be stored.

    Args:
        clean: ``[B, T, C, H, W]``.
        threat: the threat model of the whole batch, which says how videos are stored.
        measure: size of a change.

    Attributes:
        size: ``[B]``, of the smallest success, infinite where there is none.
    """

    def __init__(
        self, clean: Tensor, threat: ThreatModel, measure: Callable[[Tensor], Tensor]
    ) -> None:
        self._clean = clean
        self._threat = threat
        self._measure = measure
        self._video = clean.clone()
        self.size = clean.new_full((len(clean),), math.inf)

    def offer(self, points: Tensor, rows: Tensor) -> None:
        """Take those ``points [b, ...]`` of videos ``rows`` that are smaller than what there is."""
        if not rows.numel():
            return
        clean = self._clean[rows]
        stored = self._threat.select(rows).store(points, clean)
        size = self._measure(stored - clean)
        closer = size < self.size[rows]
        self._video[rows[closer]], self.size[rows[closer]] = stored[closer], size[closer]

    def answer(self, victim: Victim) -> Tensor:
        """Return the smallest successes, and the victim's best points of videos without one."""
        missing = self.size.isinf().view(-1, 1, 1, 1, 1)
        return victim.best().where(missing, self._video)


def affordable(victim: Victim, rows: Tensor, *, gradients: int = 1, scores: int = 0) -> Tensor:
    """Return the ``rows`` that have budget for so many more gradients and looks without one.

    For a video that asks for more than its budget the victim answers, with its first success.
    Attacks that search for a smaller one have to stop before that.
    """
    rules = victim.rules
    kept = []
    for row in rows.tolist():
        left = victim.remaining(row)
        fits = left is None or left >= gradients * rules.eot + scores
        if rules.max_backwards is not None:
            spent = victim.meters[row].backwards + gradients * rules.eot
            fits &= spent <= rules.max_backwards
        kept.append(fits)
    return rows[torch.tensor(kept, dtype=torch.bool, device=rows.device)]
