"""Base of defenses that purify every frame with a diffusion model of images."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, TypeAlias

import torch
from vcr_core.adaptive import straight_through

from vcr_defenses.candidates import Candidates
from vcr_defenses.diffusion import schedule as sched
from vcr_defenses.diffusion.frame_space import FrameSpace

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor
    from vcr_core.protocols import ClipFn
    from vcr_core.randomness import VideoRandom

    from vcr_defenses.params.diffusion import FrameNoise, FramePurifierParams

Draw: TypeAlias = "Callable[[Tensor], Tensor]"
"""From images ``[N, 3, h, w]`` to standard normal noise of that shape."""


class FramePurifier(Candidates):
    """Noises the frames of each video and denoises them, ``rounds`` times.

    The gradient of the process is not taken: BPDA with the identity as the stand-in (Athalye,
    Carlini, Wagner, ICML 2018), to be averaged over draws (EOT).

    Args:
        params: model, fit, rounds and votes.
        noise_steps: training steps of noise; with 0 nothing happens.
        asking: the component's name, for messages.
    """

    def __init__(self, params: FramePurifierParams, noise_steps: int, asking: str) -> None:
        super().__init__(params.votes, params.merge)
        self._common = params
        self._noise_steps = noise_steps
        self.space = FrameSpace(params, asking)
        self.space.check_steps("noise_steps", noise_steps)

    @property
    def stochastic(self) -> bool:
        """Whether these parameters make the defense random."""
        return self._noise_steps > 0

    @abstractmethod
    def denoise(self, noisy: Tensor, images: Tensor, draw: Draw) -> Tensor:
        """Return clean images of noisy ones at step ``noise_steps - 1``.

        Args:
            noisy: ``[N, 3, h, w]`` in the model's scale.
            images: what they were before the noise.
            draw: makes noise.
        """

    def wrap_surrogate(self, predict: ClipFn, random: VideoRandom) -> ClipFn:
        """Return :meth:`wrap`, whose votes have the stand-in's gradient each."""
        return self.wrap(predict, random)

    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return purified clips, with the gradient of the identity.

        Videos pass one after another, so that neither results nor memory depend on the batch.

        Args:
            clips: ``[B, V, T, 3, H, W]``, float in [0, 1].
            random: noise is drawn from it, frame by frame.

        Raises:
            ValueError: for clips that are not RGB.
            ComponentUnavailable: if the network's files are missing or it returns no numbers.
        """
        with torch.no_grad():
            if self._noise_steps == 0:
                purified = clips.clone()
            else:
                rows = range(len(clips))
                purified = torch.stack([self._one(clips[b], random.select([b])) for b in rows])
        return straight_through(clips, purified) if clips.requires_grad else purified

    def _one(self, clips: Tensor, random: VideoRandom) -> Tensor:
        frames = clips.flatten(0, 1)
        images = self.space.enter(frames.float())
        draw = drawing(random, self._common.noise)
        level = self.space.schedule.abar(self._noise_steps - 1)
        for _ in range(self._common.rounds):
            noisy = sched.add_noise(images, draw(images), level)
            images = self.denoise(noisy, images, draw)
        return self.space.leave(images, *frames.shape[-2:]).to(clips.dtype).view_as(clips)


def drawing(random: VideoRandom, noise: FrameNoise) -> Draw:
    """Return a maker of noise for the frames of the one video of ``random``."""

    def draw(images: Tensor) -> Tensor:
        shape = images.shape if noise == "independent" else (1, *images.shape[1:])
        return random.normal(*shape)[0].to(images).expand_as(images)

    return draw
