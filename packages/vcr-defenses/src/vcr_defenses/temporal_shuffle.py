"""Frames in another order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from vcr_defenses.candidates import Candidates
from vcr_defenses.draws import draw_shape
from vcr_defenses.params.temporal import TemporalShuffleParams
from vcr_defenses.time_axis import take_frames

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.randomness import VideoRandom


def chunk_order(draws: list[float], reach: int, chunk: int) -> list[int]:
    """Return which input frame each output frame shows, one for each draw.

    Until all frames are filled, a run of ``chunk`` consecutive frames begins at most ``reach``
    frames from the next output position ``t``, but never at ``t`` itself.

    Args:
        draws: uniform numbers in [0, 1), as many as there are frames; some remain unused.
        reach: largest distance of a start.
        chunk: frames of a run; runs end at the end of the clip.
    """
    count = len(draws)
    order: list[int] = []
    for draw in draws:
        t = len(order)
        if t >= count:
            break
        starts = [s for s in range(max(0, t - reach), min(count, t + reach + 1)) if s != t] or [t]
        start = starts[int(draw * len(starts))]
        order.extend(range(start, min(start + chunk, count)))
    return order[:count]


class TemporalShuffle(Candidates):
    """Resampling or permutation of the frames of a clip; one draw a video by default.

    Hwang, Zhang, Choi, Hsieh, Lee, "Temporal shuffling for defending deep action recognition
    models against adversarial attacks", Neural Networks 169, 2024. Mode ``chunks`` is the
    algorithm of the VCR-Bench code; it repeats and leaves out frames. The gradient is exact.
    """

    stochastic = True

    def __init__(self, params: TemporalShuffleParams | None = None) -> None:
        self.params = params or TemporalShuffleParams()
        super().__init__(self.params.votes, self.params.merge)

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return clips whose frames are frames of the input.

        Args:
            clips: ``[B, V, T, C, H, W]``, float in [0, 1].
            random: one order a video or clip is drawn from it.
        """
        count = clips.shape[2]
        draws = random.uniform(*draw_shape(self.params.per, clips), count).cpu()
        orders = [self.order(row) for row in draws.reshape(-1, count)]
        return take_frames(clips, torch.stack(orders).view(*draws.shape))

    def order(self, draws: Tensor) -> Tensor:
        """Return the input frame of each output frame for ``[T]`` uniform numbers in [0, 1)."""
        if self.params.mode == "chunks":
            return torch.tensor(
                chunk_order(draws.tolist(), self.params.reach, self.params.chunk), dtype=torch.int64
            )
        window = len(draws) if self.params.mode == "full" else self.params.window
        parts = torch.split(draws, window)
        return torch.cat([part.argsort() + i * window for i, part in enumerate(parts)])
