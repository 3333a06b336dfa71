"""From view logits to one prediction a video."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


def aggregate(view_logits: Tensor) -> Tensor:
    """Return log of the mean softmax over views, ``[B, V, K] -> [B, K]``.

    ``logsumexp_v(log_softmax(z_v)) - log V``: finite and with a gradient even where a probability
    underflows, which a logarithm of the mean probability is not.
    """
    log_p = view_logits.log_softmax(dim=-1)
    return log_p.logsumexp(dim=1) - math.log(view_logits.shape[1])


def corner(log_probabilities: Tensor, label: int) -> dict[str, Any]:
    """Return the record of one prediction from ``[K]`` log-probabilities.

    Keys as in :class:`vcr_core.record_schema.Corner`: ``pred``, ``p_label``, ``p_pred``, ``top5``
    and ``margin`` (log-probability of the label minus the best other one).
    """
    z = log_probabilities.detach().double().cpu()
    p = z.exp()
    pred = int(z.argmax())
    others = z.clone()
    others[label] = float("-inf")
    gap = float(z[label] - others.max()) if p.numel() > 1 else None
    return {
        "pred": pred,
        "p_label": float(p[label]),
        "p_pred": float(p[pred]),
        "top5": p.topk(min(5, p.numel())).indices.tolist(),
        "margin": gap if gap is not None and math.isfinite(gap) else None,
    }
