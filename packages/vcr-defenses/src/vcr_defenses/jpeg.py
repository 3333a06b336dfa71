"""JPEG compression of every frame."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import InputDefense

from vcr_defenses.jpeg_codec import compress, soft_round, straight_through_round, whole_samples
from vcr_defenses.params.spatial import JpegParams
from vcr_defenses.pixel_range import clamp_straight_through

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor
    from vcr_core.randomness import VideoRandom

# Frames that pass the torch backend at once hold at most this many values.
_CHUNK_ELEMENTS = 2**23


class Jpeg(InputDefense):
    """Encode every frame as a JPEG and decode it again.

    Guo, Rana, Cisse, van der Maaten, "Countering adversarial images using input transformations",
    ICLR 2018, and Das et al., 2017. Values are clipped and rounded to 8 bits first. Deterministic.

    The codec has no gradient; :meth:`surrogate` offers a differentiable JPEG for the backward
    pass of an adaptive attack.
    """

    stochastic = False

    def __init__(self, params: JpegParams | None = None) -> None:
        self.params = params or JpegParams()

    @torch.no_grad()
    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return decoded clips on the 8-bit grid, without a gradient.

        Args:
            clips: ``[B, V, T, 3, H, W]``, float in [0, 1].
            random: not used.

        Raises:
            ValueError: for clips that are not RGB.
        """
        frames = _rgb_frames(clips)
        levels = (frames.clamp(0, 1) * 255).round()
        decode = self._pil if self.params.backend == "pil" else self._torch
        per_call = max(1, _CHUNK_ELEMENTS // frames[0].numel())
        parts = [
            decode(levels[start : start + per_call]) for start in range(0, len(levels), per_call)
        ]
        return (torch.cat(parts) / 255).view_as(clips)

    def surrogate(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return a differentiable JPEG of the clips, the stand-in of BPDA.

        Rounding is replaced as ``surrogate`` says; the input's own rounding and the output's
        clipping count as the identity, so that saturated pixels keep their gradient.

        Args:
            clips: ``[B, V, T, 3, H, W]``, float in [0, 1].
            random: not used.

        Raises:
            ValueError: for clips that are not RGB.
        """
        if self.params.surrogate == "identity":
            return clips
        rounding = soft_round if self.params.surrogate == "cubic" else straight_through_round
        decoded = self._compress(_rgb_frames(clips) * 255, rounding, lambda s: s).view_as(clips)
        decoded = decoded / 255
        return clamp_straight_through(decoded)

    def _torch(self, levels: Tensor) -> Tensor:
        return self._compress(levels, torch.round, whole_samples)

    def _compress(
        self,
        levels: Tensor,
        rounding: Callable[[Tensor], Tensor],
        samples: Callable[[Tensor], Tensor],
    ) -> Tensor:
        return compress(
            levels,
            self.params.quality,
            subsample=self.params.subsampling == "4:2:0",
            rounding=rounding,
            samples=samples,
        )

    def _pil(self, levels: Tensor) -> Tensor:
        import numpy as np
        from PIL import Image

        # The library's codes: 0 is 4:4:4, 2 is 4:2:0.
        subsampling = 2 if self.params.subsampling == "4:2:0" else 0
        decoded = []
        for frame in levels.to("cpu", torch.uint8).permute(0, 2, 3, 1).contiguous().numpy():
            with io.BytesIO() as buffer:
                Image.fromarray(frame).save(
                    buffer, "JPEG", quality=self.params.quality, subsampling=subsampling
                )
                with Image.open(buffer) as image:
                    decoded.append(np.asarray(image.convert("RGB")))
        pixels = torch.from_numpy(np.stack(decoded)).permute(0, 3, 1, 2)
        return pixels.to(levels)


def _rgb_frames(clips: Tensor) -> Tensor:
    """Return ``[N, 3, H, W]``; the codec's colour transform is defined for RGB only."""
    if clips.shape[-3] != 3:
        raise ValueError(f"jpeg needs RGB clips [B, V, T, 3, H, W], got {tuple(clips.shape)}")
    return clips.reshape(-1, *clips.shape[-3:])
