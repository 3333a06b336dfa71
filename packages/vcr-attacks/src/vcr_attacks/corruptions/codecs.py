"""Lossy coding of the whole video.

H.264 and H.265: Yi et al., "Benchmarking the robustness of spatial-temporal models against
corruptions", NeurIPS 2021. MPEG-1 and MPEG-2 are types of Schiappa et al., "A large-scale
robustness analysis of video action recognition models", CVPR 2023, whose quantizers are not
published; the five here are ours.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from vcr_attacks.corruptions.coding import (
    H264,
    H265,
    MPEG1,
    MPEG2,
    Codec,
    Stream,
    decoded,
    encoded,
    need,
)
from vcr_attacks.corruptions.source import SeverityCorruption, repainted

if TYPE_CHECKING:
    from vcr_core.protocols import Transformed, WholeVideo
    from vcr_core.randomness import VideoRandom

    from vcr_attacks.params.corruptions import CorruptionParams

H264_CRF = (23, 30, 37, 44, 51)
H265_CRF = (27, 33, 39, 45, 51)
ABR = (2, 4, 8, 16, 32)
QUANTIZER = (4, 8, 16, 24, 31)

_LEAST_BITS = 1000


class Recoded(SeverityCorruption):
    """Base of types that encode the video and decode it again.

    Attributes:
        codec: what is used.
    """

    codec: ClassVar[Codec]

    def __init__(self, params: CorruptionParams | None = None) -> None:
        super().__init__(params)
        need(self.codec, self.type)

    @abstractmethod
    def stream(self, video: WholeVideo, level: int) -> Stream:
        """Return the video, encoded."""

    def change(self, video: WholeVideo, level: int, random: VideoRandom) -> Transformed:
        """Return the video as it is after encoding and decoding."""
        stream = self.stream(video, level)
        return repainted(decoded(stream).frames, bytes=stream.size)


class H264Crf(Recoded):
    """H.264 at a constant rate factor."""

    type = "h264-crf"
    codec = H264

    def stream(self, video: WholeVideo, level: int) -> Stream:
        """See :meth:`Recoded.stream`."""
        return encoded(video.frames, video.fps, self.codec.given(crf=str(H264_CRF[level])))


class H265Crf(Recoded):
    """H.265 at a constant rate factor."""

    type = "h265-crf"
    codec = H265

    def stream(self, video: WholeVideo, level: int) -> Stream:
        """See :meth:`Recoded.stream`."""
        return encoded(video.frames, video.fps, self.codec.given(crf=str(H265_CRF[level])))


class _AverageRate(Recoded):
    """Base of types with a part of the bit rate.

    The published code divides the bit rate of the original file. Here only frames are known, so
    the rate is that of the codec's default quality, divided.
    """

    def stream(self, video: WholeVideo, level: int) -> Stream:
        """See :meth:`Recoded.stream`."""
        frames, fps = video.frames, video.fps
        seconds = len(frames) / float(fps or 25)
        default = encoded(frames, fps, self.codec).size * 8 / seconds
        asked = max(_LEAST_BITS, int(default / ABR[level]))
        # The buffer bounds the rate over one second, as in the published code.
        limited = self.codec.given(maxrate=str(asked), bufsize=str(asked))
        return encoded(frames, fps, limited, bit_rate=asked)


class H264Abr(_AverageRate):
    """H.264 at a part of its usual bit rate."""

    type = "h264-abr"
    codec = H264


class H265Abr(_AverageRate):
    """H.265 at a part of its usual bit rate."""

    type = "h265-abr"
    codec = H265


class _FixedQuantizer(Recoded):
    """Base of types with one quantizer for all blocks."""

    def stream(self, video: WholeVideo, level: int) -> Stream:
        """See :meth:`Recoded.stream`."""
        scale = str(QUANTIZER[level])
        return encoded(video.frames, video.fps, self.codec.given(qmin=scale, qmax=scale))


class Mpeg1(_FixedQuantizer):
    """MPEG-1 at a fixed quantizer."""

    type = "mpeg1"
    codec = MPEG1


class Mpeg2(_FixedQuantizer):
    """MPEG-2 at a fixed quantizer."""

    type = "mpeg2"
    codec = MPEG2
