"""Asking a classifier about many noisy copies of each video."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from vcr_defenses.certify import abstains, certificate
from vcr_defenses.votes import count_votes, histogram, merge_votes, vote_scores

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor
    from vcr_core.randomness import VideoRandom

    from vcr_defenses.params.smoothing import NoisyVoteParams

MOST_AT_ONCE = 16
"""Noisy videos that are in memory at once while votes are counted, unless a batch has more."""


class NoisyVote:
    """A smoothed function: the class that most noisy copies of a video get.

    Copies are drawn by video and number, so neither the batch nor how many pass at once matters.
    With gradients the result is the log of the mean probability over ``gradient_n`` copies, whose
    gradient is the one of SmoothAdv (Salman et al., NeurIPS 2019, equation 6); all copies keep
    their graph, unless the model is given fewer clips at a time (``runtime.chunk_clips``).

    Args:
        base: from noisy copies ``[k * B, …]``, not clamped, to log-probabilities ``[k * B, K]``.
        params: noise, numbers of copies, level.
        random: one generator per video.
    """

    def __init__(
        self,
        base: Callable[[Tensor], Tensor],
        params: NoisyVoteParams,
        random: VideoRandom,
    ) -> None:
        self._base = base
        self._params = params
        self._random = random
        self._calls = 0
        self._details: list[dict[str, Any]] = []

    def __call__(self, shown: Tensor) -> Tensor:
        """Return log-probabilities ``[B, K]`` of videos or clips ``[B, …]``."""
        params = self._params
        # A vote around this one asks again: other copies, then.
        stage = f"vote-{self._calls}"
        self._calls += 1
        if torch.is_grad_enabled() and shown.requires_grad:
            copies = self._copies(shown, stage, range(params.gradient_n))
            return merge_votes(_by_copy(self._base(copies), len(shown)), "mean-prob")
        counts = self.count(shown, params.n, stage)
        self._details = [self._told(row) for row in counts.cpu()]
        return vote_scores(counts, shown.dtype)

    def details(self) -> Sequence[Mapping[str, Any]]:
        """Return vote histogram and abstention of each video of the last call."""
        return self._details

    def certificates(self, shown: Tensor) -> list[dict[str, Any]]:
        """Return a certificate of each video; the class is chosen on copies of its own."""
        params = self._params
        chosen = self.count(shown, params.certify_n0, "select")
        counts = self.count(shown, params.certify_n, "bound")
        dims = shown[0].numel()
        return [
            certificate(
                few.tolist(), many.tolist(), sigma=params.sigma, alpha=params.alpha, dims=dims
            )
            for few, many in zip(chosen, counts, strict=True)
        ]

    def count(self, shown: Tensor, copies: int, stage: str) -> Tensor:
        """Return ``[B, K]`` int64: how many of so many copies get each class; ties go lower."""
        at_once = max(1, MOST_AT_ONCE // len(shown))
        counts: Tensor | None = None
        with torch.no_grad():
            for first in range(0, copies, at_once):
                numbers = range(first, min(first + at_once, copies))
                ballots = self._base(self._copies(shown, stage, numbers))
                votes = count_votes(_by_copy(ballots, len(shown)))
                counts = votes if counts is None else counts + votes
        if counts is None:  # pragma: no cover - the parameters ask for at least one copy
            raise ValueError("a vote needs at least one copy")
        return counts

    def _copies(self, shown: Tensor, stage: str, numbers: range) -> Tensor:
        """Return noisy copies ``[len(numbers) * B, …]``, copy by copy."""
        noise = [
            self._random.child(f"{stage}:{number}").normal(*shown.shape[1:], std=self._params.sigma)
            for number in numbers
        ]
        return torch.cat([shown + part.to(shown) for part in noise])

    def _told(self, counts: Tensor) -> dict[str, Any]:
        votes = counts.tolist()
        doubtful = self._params.abstain and abstains(votes, self._params.alpha)
        return {"votes": histogram(counts), "abstained": doubtful}


def _by_copy(ballots: Tensor, rows: int) -> Tensor:
    """Return ``[M, B, K]`` of ``[M * B, K]``."""
    return ballots.view(-1, rows, ballots.shape[-1])
