"""AdvIT: temporal consistency as a detector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from vcr_defenses.detector import Detector
from vcr_defenses.diffusion.flow import estimate_flow, warp
from vcr_defenses.params.learned import AdvItParams

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.protocols import ClipFn
    from vcr_core.randomness import VideoRandom


class AdvIt(Detector):
    """Rejects a video whose prediction changes when each frame is rebuilt from an earlier one.

    Xiao, Deng, Li, Edwards, Kang, Liu, Song, "AdvIT: adversarial frames identifier based on
    temporal consistency in videos", ICCV 2019, section 3.2. The flow from frame ``t`` to frame
    ``t - j`` is estimated, Gaussian noise is added to it, and the pseudo frame takes the colours
    of frame ``t - j`` at the ends of the flow. The method was made for models of single frames;
    for a classifier of clips all frames with a predecessor become pseudo frames, and
    ``score = mean KL(p(x) || p(x_pseudo))`` over ``j = 1 .. frames`` and noise draws. Costs
    ``frames · draws`` forward passes and as many flows as there are pairs of frames.
    """

    def __init__(self, params: AdvItParams | None = None) -> None:
        self.params = params or AdvItParams()
        super().__init__(self.params.threshold, self.params.fpr)

    @property
    def stochastic(self) -> bool:
        """Whether noise is added to the flow."""
        return self.params.flow_noise > 0

    def score(self, clips: Tensor, clean: Tensor, predict: ClipFn, random: VideoRandom) -> Tensor:
        """Return ``[B]`` scores, at least 0; see :meth:`Detector.score`."""
        chosen = self.params
        scores: list[Tensor] = []
        for back in range(1, min(chosen.frames, clips.shape[2] - 1) + 1):
            flow = self._flow(clips, back)
            for _ in range(chosen.draws if self.stochastic else 1):
                noise = random.normal(*flow.shape[1:], std=chosen.flow_noise).to(flow)
                pseudo = predict(pseudo_clips(clips, flow + noise, back))
                scores.append((clean.exp() * (clean - pseudo)).sum(dim=1).clamp_min(0))
        return torch.stack(scores).mean(dim=0) if scores else torch.zeros_like(clean[:, 0])

    def _flow(self, clips: Tensor, back: int) -> Tensor:
        """Return ``[B, V, T' - back, 2, H, W]``: from frame ``t`` to frame ``t - back``."""
        chosen, videos = self.params, clips.flatten(0, 1)
        pairs = torch.stack([videos[:, back:], videos[:, :-back]], dim=2).flatten(0, 1)
        flow = estimate_flow(pairs, chosen.flow, weights=chosen.flow_weights)[:, 0]
        return flow.view(*clips.shape[:2], clips.shape[2] - back, *flow.shape[1:])


def pseudo_clips(clips: Tensor, flow: Tensor, back: int) -> Tensor:
    """Return clips whose frames from ``back`` on are rebuilt from the frames ``back`` earlier.

    Args:
        clips: ``[B, V, T', C, H, W]`` in [0, 1].
        flow: ``[B, V, T' - back, 2, H, W]`` in pixels, from a frame to the earlier one.
        back: distance in frames.
    """
    earlier = clips[:, :, :-back]
    rebuilt = warp(earlier.flatten(0, 2), flow.flatten(0, 2)).view_as(earlier)
    return torch.cat([clips[:, :, :back], rebuilt.clamp(0, 1)], dim=2)
