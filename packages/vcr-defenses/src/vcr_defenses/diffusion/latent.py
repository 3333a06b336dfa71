"""What a video diffusion model works on: pixels to latents and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

import torch
from torch.nn.functional import pad, pixel_shuffle, pixel_unshuffle
from vcr_core.errors import ComponentUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from vcr_defenses.diffusion.schedule import NoiseSchedule


class Space(Protocol):
    """What the frames of a video are turned into.

    Attributes:
        ratio: pixels along one side of a latent value.
    """

    ratio: int

    def encode(self, frames: Tensor) -> Tensor:
        """Return latents ``[M, C, h, w]`` of frames ``[M, 3, H, W]`` in [-1, 1]."""
        ...

    def decode(self, latents: Tensor) -> Tensor:
        """Return frames ``[M, 3, H, W]`` in about [-1, 1]."""
        ...

    def to(self, device: torch.device) -> Self:
        """Move to ``device`` and return this object."""
        ...


@dataclass(slots=True)
class RearrangedPixels:
    """Blocks of ``ratio x ratio`` pixels as channels: lossless, for models of small pictures."""

    ratio: int = 1

    def encode(self, frames: Tensor) -> Tensor:
        """Return ``[M, 3 ratio², H / ratio, W / ratio]``."""
        return pixel_unshuffle(frames, self.ratio)

    def decode(self, latents: Tensor) -> Tensor:
        """Return the frames, exactly."""
        return pixel_shuffle(latents, self.ratio)

    def to(self, device: torch.device) -> Self:
        """Return this object, which holds no tensors."""
        return self


class KlLatents:
    """Latents of an ``AutoencoderKL``, the mean of its posterior, in its own scale.

    Frames pass in groups, so memory does not grow with the length of the video.

    Args:
        vae: the autoencoder.
        chunk: frames that pass at once.
    """

    def __init__(self, vae: Any, chunk: int) -> None:
        self._vae = vae
        self._chunk = chunk
        self._scale = float(vae.config.scaling_factor)
        self.ratio = 2 ** (len(vae.config.block_out_channels) - 1)

    def encode(self, frames: Tensor) -> Tensor:
        """Return the means of the posteriors times the scaling factor."""
        return self._in_chunks(lambda part: self._vae.encode(part).latent_dist.mean, frames).mul_(
            self._scale
        )

    def decode(self, latents: Tensor) -> Tensor:
        """Return what the decoder makes of the latents."""
        return self._in_chunks(lambda part: self._vae.decode(part).sample, latents / self._scale)

    def to(self, device: torch.device) -> Self:
        """Move to ``device`` and return this object."""
        self._vae.to(device)
        return self

    def _in_chunks(self, function: Callable[[Tensor], Tensor], values: Tensor) -> Tensor:
        dtype = self._vae.dtype
        return torch.cat(
            [function(part.to(dtype)).float() for part in torch.split(values, self._chunk)]
        )


class VideoModel:
    """A diffusion model of videos: a space, a noise predictor and a schedule.

    Latents are float32 ``[1, C, T, h, w]``, one video at a time: the memory that is needed does not
    depend on how many are asked for, and no video on its neighbours.

    Args:
        space: pixels to latents.
        noise: predicts the noise of latents at a training step.
        schedule: levels of the training steps.
        offset: first step of an evenly spaced sequence (``steps_offset`` of the scheduler).
        multiple: what the sides of the latents have to be multiples of.
        move: moves the noise predictor to a device.
    """

    def __init__(
        self,
        space: Space,
        noise: Callable[[Tensor, int], Tensor],
        schedule: NoiseSchedule,
        *,
        offset: int = 0,
        multiple: int = 1,
        move: Callable[[torch.device], object] = lambda _: None,
    ) -> None:
        self.space = space
        self.schedule = schedule
        self.offset = offset
        self.multiple = multiple
        self._noise = noise
        self._move = move

    def to(self, device: torch.device) -> Self:
        """Move to ``device`` and return this model."""
        self.space.to(device)
        self._move(device)
        return self

    def encode(self, frames: Tensor) -> Tensor:
        """Return latents ``[1, C, T, h, w]`` of frames ``[T, 3, H, W]`` in [0, 1], any size.

        Frames are extended at the right and bottom to what the model can take; :meth:`decode`
        cuts that off again.
        """
        unit = self.space.ratio * self.multiple
        height, width = frames.shape[-2:]
        margins = (0, -width % unit, 0, -height % unit)
        extended = pad(2 * frames.float() - 1, margins, mode="replicate")
        return self.space.encode(extended).transpose(0, 1).unsqueeze(0)

    def decode(self, latents: Tensor, size: tuple[int, int]) -> Tensor:
        """Return frames ``[T, 3, H, W]`` in [0, 1].

        Args:
            latents: ``[1, C, T, h, w]``.
            size: height and width of the frames.

        Raises:
            ComponentUnavailable: if the result is not finite, as half precision may make it.
        """
        frames = self.space.decode(latents[0].transpose(0, 1))[..., : size[0], : size[1]]
        if not bool(torch.isfinite(frames).all()):
            raise ComponentUnavailable(
                "the diffusion model returned values that are not finite; "
                "set defense.dtype = 'bfloat16' or 'float32'"
            )
        return ((frames + 1) / 2).clamp(0, 1)

    def predict_eps(self, latents: Tensor, t: int) -> Tensor:
        """Return the predicted noise of latents at training step ``t``, float32."""
        return self._noise(latents, t).float()
