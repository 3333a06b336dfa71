"""Denoising in one step, for a classifier of noisy copies (denoised smoothing)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from vcr_defenses.diffusion import schedule as sched
from vcr_defenses.diffusion.frame_space import FrameSpace

if TYPE_CHECKING:
    from torch import Tensor

    from vcr_defenses.params.diffusion import FrameDenoiserParams


class OneShotDenoiser:
    """Takes white noise of a known strength away, with one pass of a diffusion model.

    Carlini et al., "(Certified!!) adversarial robustness for free!", ICLR 2023, algorithm 1. The
    noise is in pixels of [0, 1]; in the model's scale it is twice as strong, and weaker again by
    what averaging takes away where frames are reduced. The step is the one whose noise-to-signal
    ratio is nearest.

    Args:
        params: which model, and how frames get into it.
        asking: who needs it, for messages.
    """

    def __init__(self, params: FrameDenoiserParams, asking: str) -> None:
        self.space = FrameSpace(params, asking)

    def step(self, sigma: float, height: int, width: int) -> int:
        """Return the training step that stands for noise of ``sigma``, -1 for none.

        Args:
            sigma: standard deviation in pixels of [0, 1].
            height: of a frame.
            width: of a frame.

        Raises:
            ValueError: if the model was never trained with so much noise.
        """
        return self.space.schedule.step_of_noise(sigma * self.space.gain(height, width))

    def __call__(self, noisy: Tensor, sigma: float) -> Tensor:
        """Return denoised frames ``[..., 3, H, W]`` in [0, 1], with an exact gradient.

        Args:
            noisy: ``[..., 3, H, W]``, frames in [0, 1] plus noise, *not* clamped.
            sigma: standard deviation of the noise; 0 returns the frames.
        """
        height, width = noisy.shape[-2:]
        step = self.step(sigma, height, width)
        if step < 0:
            return noisy.clamp(0, 1)
        frames = noisy.reshape(-1, *noisy.shape[-3:])
        abar = self.space.schedule.abar(step)
        images = math.sqrt(abar) * self.space.enter(frames.float())
        x0 = sched.predict_x0(images, self.space.predict_eps(images, step), abar)
        return self.space.leave(x0, height, width).to(noisy.dtype).view_as(noisy)
