"""Purification that holds on to the input's low frequencies (FreqPure)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from vcr_defenses.diffusion import schedule as sched
from vcr_defenses.diffusion.frame_purifier import Draw, FramePurifier
from vcr_defenses.diffusion.spectrum import exchange
from vcr_defenses.params.diffusion import FreqPureParams

if TYPE_CHECKING:
    from torch import Tensor


class FreqPure(FramePurifier):
    """A reverse diffusion whose predicted clean image is corrected at every step.

    Pei et al., ICML 2025: the prediction takes low-frequency amplitude from a reference, the input
    or a denoised copy of it, and its low-frequency phase is projected to within ``delta`` of the
    reference's (``phase = "project"``, the paper) or replaced by it (``"replace"``, what the
    published code comes down to). The step then uses the corrected image and the noise as it was
    predicted.
    """

    def __init__(self, params: FreqPureParams | None = None) -> None:
        self.params = params or FreqPureParams()
        super().__init__(self.params, self.params.noise_steps, "defense 'freqpure'")
        if self.params.ref == "denoised":
            self.space.check_steps("ref_noise_steps", self.params.ref_noise_steps)

    def denoise(self, noisy: Tensor, images: Tensor, draw: Draw) -> Tensor:
        """Return the images that the corrected reverse diffusion leads to."""
        levels, x = self.space.schedule, noisy
        last = self.params.noise_steps
        # The first step is the one that the noise was added for.
        steps = sched.spread_steps(last - 1, self.params.denoise_steps or last)
        for step, after in pairwise([*steps, -1]):
            abar, abar_next = levels.abar(step), levels.abar(after)
            eps = self.space.predict_eps(x, step)
            x0 = self.correct(sched.predict_x0(x, eps, abar), self._reference(images, draw))
            noise = draw(x) if self.params.sampler == "ddpm" and after >= 0 else None
            eta = 0.0 if noise is None else 1.0
            x = sched.ddim_step(x0, eps, abar, abar_next, eta=eta, noise=noise)
        return x

    def correct(self, x0: Tensor, reference: Tensor) -> Tensor:
        """Return ``E(x0; reference)`` in the model's scale, clipped to it."""
        exchanged = exchange(
            (x0 + 1) / 2,
            (reference + 1) / 2,
            amplitude_radius=self.params.amplitude_radius,
            phase_radius=self.params.phase_radius,
            phase=self.params.phase,
            delta=self.params.delta,
        )
        return (2 * exchanged - 1).clamp(-1, 1)

    def _reference(self, images: Tensor, draw: Draw) -> Tensor:
        """Return what low frequencies are taken from; a denoised one is drawn anew every time."""
        if self.params.ref == "input":
            return images
        step = self.params.ref_noise_steps - 1
        abar = self.space.schedule.abar(step)
        noisy = sched.add_noise(images, draw(images), abar)
        return sched.predict_x0(noisy, self.space.predict_eps(noisy, step), abar)
