"""The guided step of VideoPure: latents moved along two losses of the predicted clean video.

Jiang et al., "VideoPure: diffusion-based adversarial purification for video recognition", IEEE
TCSVT 2025, arXiv 2501.14999, with the constants and the sign of its published code:

    z' = z - scale · log(variance) · grad_z(-w_temp · L_temp + w_sp · L_sp)

with ``L_temp``, how far the predicted clean frames are from their neighbours warped along the flow,
and ``L_sp``, their squared distance from the encoded input. The logarithm is negative, so the step
climbs: it makes ``L_temp`` **smaller** and ``L_sp`` **larger**, away from the attacked video.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from vcr_defenses.diffusion.flow import warp_residual
from vcr_defenses.diffusion.schedule import ddim_sigma, predict_x0

if TYPE_CHECKING:
    from torch import Tensor

Strength: TypeAlias = Literal["published-size", "as-coded"]
"""How the step depends on the size of the video, see :class:`Guidance`."""

PUBLISHED_FRAME = 4 * 28 * 28
"""Latent values of a frame of 224 x 224 pixels, at which the constants were chosen."""

PUBLISHED_VIDEO = 32 * PUBLISHED_FRAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Guidance:
    """Constants of the guided step.

    Attributes:
        w_temp: weight of the warp error.
        w_sp: weight of the distance from the encoded input.
        sign_sp: +1 moves away from the encoded input, as the code does; -1 towards it.
        scale: length of the step.
        steps: how many steps of ``scale / steps`` are made.
        strength: ``as-coded`` takes the losses as means over a frame and over the video, so that a
            value of a small video moves further; ``published-size`` moves every value as far as
            the code does in a video of 32 x 224 x 224 pixels.
    """

    w_temp: float = 5.0
    w_sp: float = 800.0
    sign_sp: int = 1
    scale: float = 4.0
    steps: int = 1
    strength: Strength = "published-size"

    def move(
        self, z: Tensor, eps: Tensor | None, reference: Tensor, flow: Tensor, level: Level
    ) -> Tensor:
        """Return guided latents; the gradient is written out, so none is recorded.

        Args:
            z: latents ``[N, C, T, h, w]``.
            eps: predicted noise, held fixed; ``None`` where ``z`` itself is the clean video.
            reference: the encoded input.
            flow: ``[N, T - 1, 2, h, w]`` on the latents' grid.
            level: the step of the schedule.

        Returns:
            The same shape and dtype; computed in float32.
        """
        if self.scale == 0 or self.steps == 0 or (self.w_temp == 0 and self.w_sp == 0):
            return z
        start, length = z.dtype, self.scale / self.steps
        z, reference = z.float(), reference.float()
        abar = 1.0 if eps is None else level.abar
        for _ in range(self.steps):
            x0 = z if eps is None else predict_x0(z, eps.float(), abar)
            slope = self._slope(x0, reference, flow) / math.sqrt(abar)
            z = z - length * level.log_variance * slope
        return z.to(start)

    def _slope(self, x0: Tensor, reference: Tensor, flow: Tensor) -> Tensor:
        """Return the gradient with respect to ``x0`` of the weighted losses."""
        frame = x0[0, :, 0].numel()
        video = x0[0].numel()
        if self.strength == "published-size":
            frame, video = PUBLISHED_FRAME, PUBLISHED_VIDEO
        slope = (2 * self.sign_sp * self.w_sp / video) * (x0 - reference)
        if self.w_temp and x0.shape[2] > 1:
            # The code warps without a gradient: a frame is pulled to its warped successor only.
            towards = warp_residual(x0, flow).sign()
            slope[:, :, :-1] += (self.w_temp / frame) * towards
        return slope


@dataclass(frozen=True, slots=True)
class Level:
    """A step of the schedule as the guidance sees it.

    Attributes:
        abar: signal level.
        log_variance: logarithm of the variance of the DDIM posterior.
    """

    abar: float
    log_variance: float

    @classmethod
    def of(cls, abar: float, abar_next: float) -> Level:
        """Return the step from one signal level to a higher one.

        The posterior of a step to the clean video has no variance. The published model has no such
        step; where another has one, the other variance of Ho et al. (section 3.2), ``1 - abar /
        abar_next``, counts: the logarithm of a tiny number would throw the video away.
        """
        variance = ddim_sigma(abar, abar_next) ** 2 or 1 - abar / abar_next
        return cls(abar, math.log(max(variance, 1e-20)))
