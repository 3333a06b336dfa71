"""Random input defenses that may classify several draws and merge the predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import InputDefense
from vcr_core.randomness import VideoRandom

from vcr_defenses.votes import Vote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor
    from vcr_core.protocols import ClipFn

    from vcr_defenses.votes import Merge

_SEEDS = 2**62


def streams(random: VideoRandom, count: int) -> Iterator[VideoRandom]:
    """Yield ``count`` independent generators a video.

    Their seeds are drawn from ``random``, so that a function that is asked again, as inside of
    another vote, asks other candidates.
    """
    seeds = random.integers(0, _SEEDS, count).cpu()
    for i in range(count):
        yield VideoRandom(seeds[:, i].tolist(), random.device)


class Candidates(InputDefense):
    """Base of input defenses with a number of votes; with one vote it is a plain transform.

    Args:
        votes: draws that are classified.
        merge: how their predictions become one.
    """

    def __init__(self, votes: int, merge: Merge) -> None:
        self._votes = votes
        self._merge: Merge = merge

    def wrap(self, predict: ClipFn, random: VideoRandom) -> ClipFn:
        """Return ``predict`` after one draw, or the vote of several draws."""
        if self._votes == 1:
            return super().wrap(predict, random)

        def ballots(clips: Tensor) -> Tensor:
            drawn = streams(random, self._votes)
            return torch.stack([predict(self.apply(clips, stream)) for stream in drawn])

        return Vote(ballots, self._merge)
