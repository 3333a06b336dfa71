"""Merging the predictions of several candidates of one video.

Notation: ``[M, B, K]`` log-probabilities of M candidates, B videos and K classes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor

Merge: TypeAlias = Literal["mean-prob", "majority"]
"""``mean-prob``: mean of the candidates' probabilities; ``majority``: the label of most."""

_FLOOR = 1e-4
"""Probability that a majority leaves to the classes without a vote, so that all are finite."""


def merge_votes(ballots: Tensor, merge: Merge) -> Tensor:
    """Return merged log-probabilities ``[B, K]`` of ballots ``[M, B, K]``.

    A majority has a value but no useful gradient: its gradient is that of the mean probability,
    the expectation that an attacker of a vote climbs (Salman et al., NeurIPS 2019, equation 3).
    Classes without a vote share what is left as their mean probabilities are to each other, so
    that a loss weighs them as it does without a vote. Ties of a majority go to the lower class.
    """
    mean = ballots.logsumexp(dim=0) - math.log(len(ballots))
    if merge == "mean-prob":
        return mean
    value = vote_scores(count_votes(ballots), ballots.dtype, mean.detach())
    return value + (mean - mean.detach()) if mean.requires_grad else value


def vote_scores(counts: Tensor, dtype: torch.dtype, mean: Tensor | None = None) -> Tensor:
    """Return log-probabilities ``[B, K]`` of vote counts ``[B, K]``: logs of shares, all finite.

    Args:
        counts: votes of each class.
        dtype: of the result.
        mean: log-probabilities ``[B, K]`` by which classes without a vote share the rest; equal
            parts when absent.
    """
    shares = counts.to(dtype) / counts.sum(dim=1, keepdim=True)
    rest = torch.zeros_like(shares) if mean is None else mean
    voteless = counts == 0
    rest = rest.masked_fill(~voteless, -math.inf)
    rest = math.log(_FLOOR) + rest - rest.logsumexp(dim=1, keepdim=True)
    # Where every class has a vote nothing is left over.
    kept = torch.where(voteless.any(dim=1, keepdim=True), 1 - _FLOOR, 1.0)
    return torch.where(voteless, rest, (kept * shares).log())


def count_votes(ballots: Tensor) -> Tensor:
    """Return ``[B, K]`` int64: how many of the ballots ``[M, B, K]`` have their maximum there."""
    chosen = ballots.detach().argmax(dim=2).T
    counts = torch.zeros(chosen.shape[0], ballots.shape[2], dtype=torch.int64, device=chosen.device)
    return counts.scatter_add_(1, chosen, torch.ones_like(chosen))


def histogram(counts: Tensor) -> dict[str, int]:
    """Return the classes of ``[K]`` counts that got votes, as they are written into a record."""
    return {str(k): int(counts[k]) for k in counts.nonzero().flatten().tolist()}


class Vote:
    """A function of clips that asks several candidates and merges them; keeps the histogram.

    Args:
        ballots: from clips ``[B, V, T', C, H, W]`` to ``[M, B, K]`` log-probabilities.
        merge: how to merge.
    """

    def __init__(self, ballots: Callable[[Tensor], Tensor], merge: Merge) -> None:
        self._ballots = ballots
        self._merge = merge
        self._details: list[dict[str, Any]] = []

    def __call__(self, clips: Tensor) -> Tensor:
        """Return merged log-probabilities ``[B, K]``."""
        ballots = self._ballots(clips)
        self._details = [{"votes": histogram(row)} for row in count_votes(ballots).cpu()]
        return merge_votes(ballots, self._merge)

    def details(self) -> Sequence[Mapping[str, Any]]:
        """Return the vote histogram of each video of the last call."""
        return self._details
