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
    """

    def __init__(
        self, clean: Tensor, threat: ThreatModel, measure: Callable[[Tensor], Tensor]
    ) -> None:
        self._clean = clean
        self._threat = threat
        self._measure = measure
        self._video = clean.clone()
        self._size = clean.new_full((len(clean),), math.inf)

    def offer(self, points: Tensor, rows: Tensor) -> None:
        """Take those ``points [b, ...]`` of videos ``rows`` that are smaller than what there is."""
        if not rows.numel():
            return
        clean = self._clean[rows]
        stored = self._threat.select(rows).store(points, clean)
        size = self._measure(stored - clean)
        closer = size < self._size[rows]
        self._video[rows[closer]], self._size[rows[closer]] = stored[closer], size[closer]

    def answer(self, victim: Victim) -> Tensor:
        """Return the smallest successes, and the victim's best points of videos without one."""
        missing = self._size.isinf().view(-1, 1, 1, 1, 1)
        return victim.best().where(missing, self._video)


def affordable(victim: Victim, rows: Tensor) -> Tensor:
    """Return the ``rows`` that have budget for one more gradient.

    For a video that asks for more than its budget the victim answers, with its first success.
    Attacks that search for a smaller one have to stop before that.
    """
    rules = victim.rules
    kept = []
    for row in rows.tolist():
        left = victim.remaining(row)
        fits = left is None or left >= rules.eot
        if rules.max_backwards is not None:
            fits &= victim.meters[row].backwards + rules.eot <= rules.max_backwards
        kept.append(fits)
    return rows[torch.tensor(kept, dtype=torch.bool, device=rows.device)]
