"""Re-compression of a clip by a video codec."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from vcr_core.protocols import InputDefense

from vcr_defenses.codec_pass import Coding, recode
from vcr_defenses.params.spatial import VideoCodecParams

if TYPE_CHECKING:
    from torch import Tensor
    from vcr_core.randomness import VideoRandom

# The AVX-512 routines of x264 give other bytes from call to call at some frame sizes.
_PORTABLE = "asm=0"


class VideoCodec(InputDefense):
    """Encode each clip as a video and decode it again; deterministic.

    Values are clipped and rounded to 8 bits first. A clip is one stream in the order of its
    frames, whatever their distance in the source was. The codec has no gradient; the stand-in is
    the identity's.
    """

    stochastic = False

    def __init__(self, params: VideoCodecParams | None = None) -> None:
        self.params = params or VideoCodecParams()
        self._coding = coding_of(self.params)

    @torch.no_grad()
    def apply(self, clips: Tensor, random: VideoRandom) -> Tensor:
        """Return decoded clips on the 8-bit grid, without a gradient.

        Args:
            clips: ``[B, V, T, 3, H, W]``, float in [0, 1].
            random: not used.

        Raises:
            ValueError: for clips that are not RGB.
            RuntimeError: if the codec is missing or fails.
        """
        if clips.shape[-3] != 3:
            raise ValueError(
                f"video-codec needs RGB clips [B, V, T, 3, H, W], got {tuple(clips.shape)}"
            )
        levels = (clips.clamp(0, 1) * 255).round().to("cpu", torch.uint8)
        streams = levels.flatten(0, 1).permute(0, 1, 3, 4, 2).contiguous().numpy()
        decoded = torch.stack([torch.from_numpy(recode(s, self._coding)) for s in streams])
        pixels = decoded.to(clips.device).permute(0, 1, 4, 2, 3).to(clips.dtype)
        return (pixels / 255).reshape(clips.shape)


def coding_of(params: VideoCodecParams) -> Coding:
    """Return the encoder, the decoder and their options."""
    quantiser = {"qmin": str(params.qscale), "qmax": str(params.qscale)}
    rate = {"crf": str(params.crf), "preset": params.preset, "x264-params": _PORTABLE}
    encoder, decoder, options = {
        "h264": ("libx264", "h264", rate),
        "vp9": ("libvpx-vp9", "vp9", {"crf": str(params.crf), "b": "0", "cpu-used": "4"}),
        "mpeg4": ("mpeg4", "mpeg4", quantiser),
        "mjpeg": ("mjpeg", "mjpeg", quantiser),
    }[params.codec]
    # Motion JPEG uses the full range of values, which has pixel formats of its own.
    pix_fmt = params.pix_fmt.replace("yuv", "yuvj") if params.codec == "mjpeg" else params.pix_fmt
    return Coding(encoder, decoder, pix_fmt, options, params.fps)
