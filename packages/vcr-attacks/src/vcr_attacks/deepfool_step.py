"""The smallest move of one video to the nearest decision boundary, step by step linearised."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.victim import Victim

_PUSH = 1e-4
"""Added to the distance, so that a step does not end on the boundary itself."""


def nearest_boundary(
    victim: Victim,
    start: Tensor,
    label: int,
    *,
    candidates: int,
    overshoot: float,
    steps: int,
) -> Tensor | None:
    """Return a small move that changes the prediction, ``None`` if none was found.

    DeepFool in L2: Moosavi-Dezfooli, Fawzi, Frossard, CVPR 2016, algorithm 2, with the differences
    ``z_k - z_label`` of aggregated log-probabilities and the most probable classes only.

    Args:
        victim: white-box access to one video.
        start: ``[1, T, C, H, W]``.
        label: the class to leave.
        candidates: classes to look at, ``label`` included.
        overshoot: share by which the found move is lengthened.
        steps: linearisations at most; each costs ``candidates - 1`` gradients.
    """
    scores = victim.scores(start)
    count = min(candidates, scores.shape[1])
    classes = [k for k in scores[0].topk(count).indices.tolist() if k != label]
    move = torch.zeros_like(start)
    point = start
    for _ in range(steps):
        best: tuple[float, Tensor] | None = None
        for k in classes:
            value, grad, _ = victim.loss_and_grad(point, loss=_difference(k, label))
            size = float(grad.norm())
            if size == 0:
                continue
            distance = float(value.abs()) + _PUSH
            if best is None or distance / size < best[0]:
                best = distance / size, grad * (distance / size**2)
        if best is None:
            return None
        move = move + best[1]
        point = (start + (1 + overshoot) * move).clamp(0, 1)
        if int(victim.scores(point).argmax(dim=1)) != label:
            return (point - start)[0]
    return None


def _difference(k: int, label: int) -> Callable[[Tensor, Tensor], Tensor]:
    return lambda logits, _rows: logits[:, k] - logits[:, label]
