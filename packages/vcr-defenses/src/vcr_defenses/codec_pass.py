"""Frames through a video codec and back, in memory."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    Frames = NDArray[np.uint8]

SMALLEST_SIDE = 16
"""Encoders refuse smaller frames."""


@dataclass(frozen=True, slots=True)
class Coding:
    """How to encode and decode.

    Attributes:
        encoder: the library's name of the encoder.
        decoder: the library's name of the decoder.
        pix_fmt: what the encoder gets.
        options: of the encoder.
        fps: frames per second.
    """

    encoder: str
    decoder: str
    pix_fmt: str
    options: Mapping[str, str]
    fps: int


def recode(frames: Frames, coding: Coding) -> Frames:
    """Return the decoded frames ``[T, H, W, 3]``, RGB, in their order.

    One thread encodes and one decodes, so the same frames give the same bytes. Sides are padded to
    even ones of at least :data:`SMALLEST_SIDE` by repeating the border, and cut afterwards.

    Raises:
        RuntimeError: if the codec is missing, fails, or gives another number of frames back.
    """
    import av
    import numpy as np

    count, height, width = frames.shape[:3]
    rows, columns = (max(SMALLEST_SIDE, n + n % 2) - n for n in (height, width))
    padded = np.pad(frames, ((0, 0), (0, rows), (0, columns), (0, 0)), mode="edge")
    try:
        decoded = _decode(_encode(padded, coding), coding)
    except (av.error.FFmpegError, av.codec.codec.UnknownCodecError) as error:
        raise RuntimeError(
            f"{coding.encoder} could not recode {count} frames of {width}x{height}: {error}"
        ) from error
    if len(decoded) != count:
        raise RuntimeError(f"{coding.encoder} made {len(decoded)} frames of {count}")
    return np.stack(decoded)[:, :height, :width]


def _encode(frames: Frames, coding: Coding) -> tuple[list[Any], bytes | None]:
    """Return packets, and the header that some codecs keep apart."""
    import av

    encoder: Any = av.CodecContext.create(coding.encoder, "w")
    encoder.height, encoder.width = frames.shape[1:3]
    encoder.pix_fmt = coding.pix_fmt
    encoder.framerate = Fraction(coding.fps)
    encoder.time_base = 1 / encoder.framerate
    encoder.thread_count = 1
    encoder.options = dict(coding.options)
    packets = []
    for position, pixels in enumerate(frames):
        frame = av.VideoFrame.from_ndarray(pixels, format="rgb24").reformat(format=coding.pix_fmt)
        frame.pts, frame.time_base = position, encoder.time_base
        packets += encoder.encode(frame)
    packets += encoder.encode(None)
    return packets, encoder.extradata


def _decode(stream: tuple[list[Any], bytes | None], coding: Coding) -> list[Frames]:
    import av

    packets, header = stream
    decoder: Any = av.CodecContext.create(coding.decoder, "r")
    decoder.thread_count = 1
    if header:
        decoder.extradata = header
    frames = [frame for packet in [*packets, None] for frame in decoder.decode(packet)]
    return [frame.to_ndarray(format="rgb24") for frame in frames]
