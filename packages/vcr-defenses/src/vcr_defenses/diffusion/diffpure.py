"""Purification by a full reverse diffusion (DiffPure)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from vcr_defenses.diffusion import schedule as sched
from vcr_defenses.diffusion.frame_purifier import Draw, FramePurifier
from vcr_defenses.params.diffusion import DiffPureParams

if TYPE_CHECKING:
    from torch import Tensor


class DiffPure(FramePurifier):
    """Adds noise up to a step and runs the diffusion back from there.

    Nie et al., "Diffusion models for adversarial purification", ICML 2022, equations 3 and 4, in
    its discrete form: ancestral DDPM steps with the predicted clean image clipped, as their code
    does on ImageNet. Variances are those of the posterior, not learned ones.
    """

    def __init__(self, params: DiffPureParams | None = None) -> None:
        self.params = params or DiffPureParams()
        super().__init__(self.params, self.params.noise_steps, "defense 'diffpure'")

    def denoise(self, noisy: Tensor, images: Tensor, draw: Draw) -> Tensor:
        """Return the images that the reverse diffusion leads to."""
        levels, x = self.space.schedule, noisy
        last = self.params.noise_steps
        steps = sched.spread_steps(last - 1, self.params.denoise_steps or last)
        for step, after in pairwise([*steps, -1]):
            abar, abar_next = levels.abar(step), levels.abar(after)
            eps = self.space.predict_eps(x, step)
            x0 = sched.predict_x0(x, eps, abar).clamp(-1, 1)
            if self.params.sampler == "ddpm":
                noise = draw(x) if after >= 0 else None
                x = sched.ddpm_step(x, x0, abar, abar_next, noise)
            else:
                x = sched.ddim_step(x0, sched.eps_of_x0(x, x0, abar), abar, abar_next)
        return x
