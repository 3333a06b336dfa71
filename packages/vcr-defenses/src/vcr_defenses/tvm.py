"""Total variation minimisation after dropping values at random."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import InputDefense

from vcr_defenses.draws import draw_shape
from vcr_defenses.params.spatial import TvmParams
from vcr_defenses.pixel_range import clamp_straight_through
from vcr_defenses.tv_solver import minimise_tv

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.randomness import VideoRandom

# Enough values at once to be worth a call, few enough for fast memory.
_PART_ELEMENTS = 2**18


class Tvm(InputDefense):
    """Drop values at random and rebuild the frame with little total variation.

    Guo, Rana, Cisse, van der Maaten, "Countering adversarial images using input transformations",
    ICLR 2018, section 3.3: a Bernoulli mask for each pixel and channel, then
    ``argmin_z 1/2 |mask (z - x)|² + weight TV(z)``, with the isotropic TV and the scale of
    ``weight`` that the authors' default solver has. ``temporal_weight`` adds the absolute
    differences between frames.

    The gradient is the identity's, or that of the unrolled steps (:meth:`surrogate`).
    """

    def __init__(self, params: TvmParams | None = None) -> None:
        self.params = params or TvmParams()

    @property
    def stochastic(self) -> bool:
        """Whether these parameters make the defense random."""
        return self.params.drop > 0

    @torch.no_grad()
    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return rebuilt clips, without a gradient.

        Args:
            clips: ``[B, V, T, C, H, W]``, float in [0, 1].
            random: one mask ``[C, H, W]`` a video, clip or frame is drawn from it.
        """
        return self._rebuilt(clips, random)

    def surrogate(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return the clips, or with ``surrogate = "unrolled"`` the rebuilt ones with a gradient."""
        if self.params.surrogate == "identity":
            return clips
        return self._rebuilt(clips, random)

    def _rebuilt(self, clips: Tensor, random: VideoRandom) -> Tensor:
        kept = self._mask(clips, random).expand_as(clips)
        # Rows that depend on each other stay together: the frames of a clip and channel, with time.
        in_time = self.params.temporal_weight > 0
        pair = (clips.transpose(2, 3), kept.transpose(2, 3)) if in_time else (clips, kept)
        batch, views, outer, _, *frame = pair[0].shape
        size = 1 if in_time else max(1, _PART_ELEMENTS // clips[0, 0, 0].numel())
        rebuilt = [
            self._solve(*(part[b, v, i : i + size].reshape(-1, *frame) for part in pair))
            for b in range(batch)
            for v in range(views)
            for i in range(0, outer, size)
        ]
        merged = torch.cat(rebuilt).view(pair[0].shape)
        return merged.transpose(2, 3).contiguous() if in_time else merged

    def _solve(self, values: Tensor, kept: Tensor) -> Tensor:
        """Return rebuilt rows ``[n, H, W]``."""
        rebuilt = minimise_tv(
            values,
            kept,
            self.params.weight,
            self.params.iterations,
            self.params.temporal_weight,
        )
        return clamp_straight_through(rebuilt)

    def _mask(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return ones where a value stays, of a shape that broadcasts to the clips."""
        if self.params.drop == 0:
            return torch.ones_like(clips)
        shape = draw_shape(self.params.per, clips)
        draws = random.uniform(*shape, *clips.shape[3:]).to(clips.device)
        kept = (draws >= self.params.drop).to(clips.dtype)
        return kept.view(len(clips), *shape, *[1] * (2 - len(shape)), *clips.shape[3:])
