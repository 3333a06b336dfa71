"""What every purifier needs of a diffusion model, whatever library it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

import torch

if TYPE_CHECKING:
    from torch import Tensor

    from vcr_defenses.diffusion.schedule import NoiseSchedule


@runtime_checkable
class Denoiser(Protocol):
    """A noise predictor in its own space: images or latents in the scale of its training.

    For image models that is [-1, 1], ``u = 2x - 1`` of pixels in [0, 1].
    """

    @property
    def schedule(self) -> NoiseSchedule:
        """The levels of its training steps."""
        ...

    @property
    def size(self) -> int | None:
        """Side it was trained at, ``None`` if it does not say."""
        ...

    @property
    def multiple(self) -> int:
        """Height and width have to be multiples of this."""
        ...

    def predict_eps(self, x_t: Tensor, t: int) -> Tensor:
        """Return the predicted noise, same shape and dtype as ``x_t``.

        Args:
            x_t: ``[N, C, H, W]`` for image models, ``[N, C, T, H, W]`` for video models.
            t: training step, 0 .. len(schedule) - 1, the same for all.
        """
        ...

    def to(self, device: torch.device | str) -> Self:
        """Move to ``device`` and return the denoiser."""
        ...


def eps_in_parts(denoiser: Denoiser, x_t: Tensor, t: int, part: int) -> Tensor:
    """Return the predicted noise of ``[N, ...]``, at most ``part`` entries passing at once."""
    if len(x_t) <= part:
        return denoiser.predict_eps(x_t, t)
    return torch.cat([denoiser.predict_eps(x_t[i : i + part], t) for i in range(0, len(x_t), part)])
