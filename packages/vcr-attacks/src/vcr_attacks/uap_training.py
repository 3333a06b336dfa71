"""Training of universal perturbations: sign steps, or moves to the nearest boundary."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from vcr_core.errors import IncompatibleComponents

from vcr_attacks.tangents import cross
from vcr_attacks.universal import place
from vcr_attacks.universal_training import Training

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor
    from vcr_core.protocols import PrepareContext, VideoItem
    from vcr_core.randomness import VideoRandom
    from vcr_core.victim import Victim

    from vcr_attacks.params.prepared import UapParams


class UapTraining(Training):
    """A perturbation of the model's input size inside the threat's ball.

    Raises:
        IncompatibleComponents: for a targeted run with ``algorithm = "deepfool"``.
    """

    def __init__(self, params: UapParams, ctx: PrepareContext) -> None:
        if params.algorithm == "deepfool" and ctx.targets is not None:
            raise IncompatibleComponents(
                "uap with attack.algorithm = 'deepfool' is untargeted; use 'sgd' or "
                "threat.targeted = false"
            )
        self.params = params
        super().__init__(params, ctx)

    def start(self, first: Tensor) -> Tensor:
        """Return no perturbation, ``[T, C, S, S]``."""
        side = self.ctx.model.clip.size
        self.radius = self.threat.radius(first)[0]
        return first.new_zeros(first.shape[1], first.shape[2], side, side)

    def shown(self, variable: Tensor, videos: Tensor, random: VideoRandom) -> Tensor:
        """Return the videos with the perturbation added."""
        return self._applied(variable, videos)

    def step(self, variable: Tensor, grad: Tensor) -> Tensor:
        """Return the perturbation after a sign step."""
        return self._clamped(variable - self.params.step * grad.sign())

    def loss(self, victim: Victim) -> Callable[[Tensor, Tensor], Tensor]:
        """Return the goals' cross-entropy, clipped for videos that are fooled well already."""
        goals, bound = victim.goals, -self.params.clip

        def loss(logits: Tensor, rows: Tensor) -> Tensor:
            value = goals.loss(logits, rows)
            return value if goals.targeted else value.clamp_min(bound)

        return loss

    def epoch(
        self,
        delta: Tensor,
        items: Sequence[VideoItem],
        target: int | None,
        epoch: int,
        tick: Callable[[int], None],
    ) -> Tensor:
        """Return the perturbation after a pass, video by video or in mini-batches."""
        if self.params.algorithm == "sgd":
            return super().epoch(delta, items, target, epoch, tick)
        for count, item in enumerate(items, start=1):
            (batch,) = self.ctx.load([item])
            victim = self.ctx.victim(batch, repeat=epoch)
            clean = victim.scores(batch.videos).argmax(dim=1)
            point = self._applied(delta, batch.videos)
            if torch.equal(victim.scores(point).argmax(dim=1), clean):
                reached, across = cross(
                    victim,
                    point,
                    clean,
                    lambda ahead, _rows: ahead.clamp_(0, 1),
                    classes=self.params.candidates,
                    overshoot=self.params.overshoot,
                    steps=self.params.inner_steps,
                )
                if bool(across):
                    delta = self._clamped(delta + self._taken_back((reached - point)[0]))
            tick(count)
        return delta

    def _taken_back(self, move: Tensor) -> Tensor:
        """Return a video's move ``[T, C, H, W]`` in the shape of the perturbation."""
        frames, size = self.zero.shape[0], (self.zero.shape[2], self.zero.shape[3])
        taken = torch.zeros_like(self.zero)
        resized = place(move.unsqueeze(0), move.shape[0], size)[0]
        count = min(frames, len(resized))
        taken[:count] = resized[:count]
        return taken

    def _applied(self, delta: Tensor, videos: Tensor) -> Tensor:
        placed = place(delta.unsqueeze(0), videos.shape[1], (videos.shape[3], videos.shape[4]))
        mask = self.threat.mask(videos)
        return (videos + (placed if mask is None else mask * placed)).clamp(0, 1)

    def _clamped(self, delta: Tensor) -> Tensor:
        return torch.minimum(torch.maximum(delta, -self.radius), self.radius)
