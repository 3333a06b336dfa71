"""How frames get into the space of a diffusion model of images, and out of it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn.functional import interpolate
from vcr_core.errors import ComponentUnavailable, ConfigError

from vcr_defenses.diffusion.denoiser import Denoiser, eps_in_parts
from vcr_defenses.diffusion.frame_model import find_frame_model, load_frame_model, torch_dtype
from vcr_defenses.diffusion.tiles import TiledDenoiser
from vcr_defenses.gaussian_blur import reflect_pad
from vcr_defenses.pixel_range import clamp_straight_through

if TYPE_CHECKING:
    from torch import Tensor

    from vcr_defenses.diffusion.schedule import NoiseSchedule
    from vcr_defenses.params.diffusion import FrameDenoiserParams


class FrameSpace:
    """A denoiser and the way to it: values in [-1, 1] at the size the denoiser works at.

    What the model says of itself is read at once; its weights when they are first needed, onto the
    device of the frames.

    Args:
        params: which model, and how frames are fitted to it.
        asking: who needs it, for messages.

    Raises:
        ComponentUnavailable: if the model is not on this machine.
        ConfigError: if it cannot work at the size that was asked for.
    """

    def __init__(self, params: FrameDenoiserParams, asking: str) -> None:
        self._params = params
        self._asking = asking
        self._info = find_frame_model(params.denoiser, asking)
        self._model: Denoiser | None = None
        self._side = params.size or self._info.size
        if params.fit == "tile" and self._side is None:
            raise ConfigError(
                f"{asking}: {params.denoiser} does not say which size it was trained at; "
                "set defense.size to the side of a tile"
            )
        if self._side is not None and self._side % self._info.multiple:
            raise ConfigError(
                f"{asking}: defense.size must be a multiple of {self._info.multiple} for "
                f"{params.denoiser}, got {self._side}"
            )

    @property
    def schedule(self) -> NoiseSchedule:
        """The levels of the model's training steps."""
        return self._info.schedule

    def check_steps(self, name: str, steps: int) -> None:
        """Refuse more steps of noise than the model was trained with.

        Raises:
            ConfigError: naming the parameter.
        """
        if steps > len(self.schedule):
            raise ConfigError(
                f"{self._asking}: defense.{name} = {steps}, but {self._params.denoiser} was "
                f"trained with {len(self.schedule)} steps of noise"
            )

    def enter(self, frames: Tensor) -> Tensor:
        """Return ``[N, 3, h, w]`` in the model's scale of frames ``[N, 3, H, W]`` in [0, 1].

        Linear, so noise that was added before is noise afterwards: see :meth:`gain`.

        Raises:
            ValueError: for frames that are not RGB.
        """
        if frames.shape[1] != 3:
            raise ValueError(f"{self._asking} needs RGB frames, got {frames.shape[1]} channels")
        height, width = frames.shape[-2:]
        side = self._resized(height, width)
        if side is not None:
            frames = _resize(frames, side, side)
        else:
            frames = _padded(frames, *self._padded_size(height, width))
        return 2 * frames - 1

    def leave(self, images: Tensor, height: int, width: int) -> Tensor:
        """Return frames ``[N, 3, height, width]`` in [0, 1] of what :meth:`enter` led to.

        Raises:
            ComponentUnavailable: where the model returned values that are not finite.
        """
        if not bool(torch.isfinite(images).all()):
            raise ComponentUnavailable(
                f"{self._asking}: {self._params.denoiser} returned values that are not finite in "
                f"{self._params.dtype}; set defense.dtype = 'bfloat16' or 'float32'"
            )
        if self._resized(height, width) is not None:
            frames = _resize(images, height, width)
        else:
            top, left = (
                (a - b) // 2 for a, b in zip(images.shape[-2:], (height, width), strict=True)
            )
            frames = images[..., top : top + height, left : left + width]
        return clamp_straight_through((frames + 1) / 2)

    def predict_eps(self, images: Tensor, t: int) -> Tensor:
        """Return the predicted noise of ``[N, 3, h, w]``, a chunk of frames at a time."""
        return eps_in_parts(self._denoiser(images.device), images, t, self._params.chunk)

    def gain(self, height: int, width: int) -> float:
        """Return the factor on the standard deviation of white noise in :meth:`enter`.

        2 for the scale, less where frames are reduced, because neighbours are averaged.
        """
        side = self._resized(height, width)
        if side is None:
            return 2.0
        return 2 * _averaging(height, side) * _averaging(width, side)

    def _denoiser(self, device: torch.device) -> Denoiser:
        if self._model is None:
            params = self._params
            model = load_frame_model(self._info, torch_dtype(params.dtype), self._asking)
            self._model = model
            if params.fit == "tile" and self._side is not None:
                self._model = TiledDenoiser(model, self._side, params.overlap, params.chunk)
        return self._model.to(device)

    def _resized(self, height: int, width: int) -> int | None:
        """Return the side of the square that frames become, ``None`` if they are not resized."""
        if self._params.fit != "resize" or self._side is None:
            return None
        if self._params.size:
            return None if height == width == self._side else self._side
        return self._side if max(height, width) > self._side else None

    def _padded_size(self, height: int, width: int) -> tuple[int, int]:
        multiple = self._info.multiple
        least = self._side if self._params.fit == "tile" and self._side else multiple
        tall, wide = (max(least, length) for length in (height, width))
        if self._params.fit == "tile":
            return tall, wide
        return -(-tall // multiple) * multiple, -(-wide // multiple) * multiple


def _resize(frames: Tensor, height: int, width: int) -> Tensor:
    return interpolate(frames, (height, width), mode="bilinear", antialias=True)


def _padded(frames: Tensor, height: int, width: int) -> Tensor:
    """Return frames mirrored at the edges up to a size."""
    for axis, wanted in ((-2, height), (-1, width)):
        missing = wanted - frames.shape[axis]
        if missing:
            grown = reflect_pad(frames, missing, axis)
            frames = grown.narrow(axis, missing - missing // 2, wanted)
    return frames


def _averaging(length: int, side: int) -> float:
    """Return how much resizing ``length`` to ``side`` reduces white noise along one axis."""
    rows = interpolate(
        torch.eye(length).view(1, 1, length, length),
        (side, length),
        mode="bilinear",
        antialias=True,
    )
    return float(rows.square().sum(dim=-1).sqrt().mean())
