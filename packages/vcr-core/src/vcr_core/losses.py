"""Attack losses, all minimised, one value a video.

Arguments are aggregated log-probabilities ``z [b, K]`` (``vcr_core.prediction``), true labels
``y [b]`` and, in a targeted contest, targets ``t [b]``. Cross-entropy, margin and DLR do not change
when a constant is added to a row, so raw logits work as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import torch

from vcr_core.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

Loss: TypeAlias = Literal["ce", "margin", "dlr", "flicker", "prob"]


def cross_entropy(z: Tensor, y: Tensor, t: Tensor | None) -> Tensor:
    """Return ``log p_y`` (untargeted) or ``-log p_t`` (targeted), computed from ``z`` alone."""
    chosen = _pick(z, y if t is None else t)
    value = chosen - torch.logsumexp(z, dim=1)
    return value if t is None else -value


def margin(z: Tensor, y: Tensor, t: Tensor | None, *, kappa: float | None = None) -> Tensor:
    """Return how far the goal is, below 0 when achieved; clipped at ``-kappa`` if given.

    Carlini & Wagner, IEEE S&P 2017, objective f6 in section V.A.
    """
    goal = y if t is None else t
    value = _pick(z, goal) - _best_other(z, goal)
    if t is not None:
        value = -value
    return value if kappa is None else value.clamp_min(-kappa)


def dlr(z: Tensor, y: Tensor, t: Tensor | None) -> Tensor:
    """Return the difference of logits ratio, invariant to shift and scale.

    Croce & Hein, ICML 2020, equations (6) and (7).

    Raises:
        UsageError: with fewer than 3 classes (4 if targeted).
    """
    needed = 3 if t is None else 4
    if z.shape[1] < needed:
        raise UsageError(
            f"loss 'dlr' needs at least {needed} classes "
            f"({'targeted' if t is not None else 'untargeted'}), the model has {z.shape[1]}; "
            "use loss 'ce' or 'margin'"
        )
    ordered = z.topk(needed, dim=1).values
    tiny = 1e-12
    if t is None:
        return (_pick(z, y) - _best_other(z, y)) / (ordered[:, 0] - ordered[:, 2] + tiny)
    spread = ordered[:, 0] - (ordered[:, 2] + ordered[:, 3]) / 2 + tiny
    return (_pick(z, y) - _pick(z, t)) / spread


def flicker(z: Tensor, y: Tensor, t: Tensor | None, *, m: float = 0.05) -> Tensor:
    """Return the smooth hinge on the probability margin; cross-entropy when targeted.

    Pony, Naeh, Mannor, CVPR 2021, section 3.2.
    """
    if t is not None:
        return cross_entropy(z, y, t)
    p = z.softmax(dim=1)
    gap = _pick(p, y) - _best_other(p, y) + m
    return torch.minimum(gap * gap / m, gap).clamp_min(0)


def probability(z: Tensor, y: Tensor, t: Tensor | None) -> Tensor:
    """Return ``p_y`` (untargeted) or ``-p_t`` (targeted)."""
    p = z.softmax(dim=1)
    return _pick(p, y) if t is None else -_pick(p, t)


LOSSES = {
    "ce": cross_entropy,
    "margin": margin,
    "dlr": dlr,
    "flicker": flicker,
    "prob": probability,
}


def _pick(z: Tensor, index: Tensor) -> Tensor:
    return z.gather(1, index.unsqueeze(1)).squeeze(1)


def _best_other(z: Tensor, index: Tensor) -> Tensor:
    return z.scatter(1, index.unsqueeze(1), float("-inf")).amax(dim=1)
