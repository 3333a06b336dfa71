"""Frames to packets of a video codec and back, in memory, the same bits every time.

A container would add nothing here: packets and the codec's parameter sets are all that a decoder
needs. The output of encoders depends on their number of threads, so there is one. It also depends
on what the memory held before, in two cases that are avoided: x264 with AVX-512 (its macroblock
tree with B-frames reads what was never written; seen with x264 165), and x265 where one block is
the whole picture. In pictures of 32 rows, x265 even writes where it must not. A test compares runs
with different garbage in memory.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from vcr_core.errors import ComponentUnavailable

if TYPE_CHECKING:
    from av.packet import Packet as AvPacket
    from av.video.codeccontext import VideoCodecContext
    from numpy.typing import NDArray

    Frames = NDArray[np.uint8]

_ASSUMED_RATE = Fraction(25)
_BLOCK = 16
"""Pictures are padded to whole blocks, as encoders do themselves."""
_SMALLEST = 64
"""The largest block of H.265."""


@dataclass(frozen=True, slots=True)
class Codec:
    """How to encode, and what decodes it.

    Attributes:
        encoder: name in FFmpeg's libraries.
        decoder: name in FFmpeg's libraries.
        options: private options of the encoder.
        any_rate: whether every frame rate can be written; otherwise 25 is.
    """

    encoder: str
    decoder: str
    options: Mapping[str, str] = field(default_factory=dict)
    any_rate: bool = True

    def given(self, **options: str) -> Codec:
        """Return the codec with further options."""
        return replace(self, options={**self.options, **options})

    def options_for(self, height: int, width: int) -> dict[str, str]:
        """Return the options for pictures of this size."""
        chosen = dict(self.options)
        if self.encoder == "libx265" and max(height, width) <= _SMALLEST:
            chosen["x265-params"] += ":ctu=16"
        return chosen


H264 = Codec(
    "libx264",
    "h264",
    {"x264-params": "asm=SSE2"} if platform.machine().lower() in ("x86_64", "amd64") else {},
)
H265 = Codec("libx265", "hevc", {"x265-params": "log-level=none:pools=none:frame-threads=1"})
MPEG1 = Codec("mpeg1video", "mpeg1video", any_rate=False)
MPEG2 = Codec("mpeg2video", "mpeg2video", any_rate=False)


@dataclass(frozen=True, slots=True)
class Packet:
    """One coded picture.

    Attributes:
        data: the bytes.
        pts: number of the frame.
        dts: position in decoding order.
    """

    data: bytes
    pts: int
    dts: int


@dataclass(frozen=True, slots=True)
class Stream:
    """A coded video.

    Attributes:
        packets: in decoding order.
        extradata: the codec's parameter sets, without which nothing can be decoded.
        decoder: name of the decoder.
        shape: ``(F, H, W)`` of the frames that went in.
    """

    packets: tuple[Packet, ...]
    extradata: bytes
    decoder: str
    shape: tuple[int, int, int]

    @property
    def size(self) -> int:
        """Number of bytes of all packets."""
        return sum(len(packet.data) for packet in self.packets)


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a decoder made of a stream.

    Attributes:
        frames: ``[F, H, W, 3]`` uint8.
        sources: which frame each shows; another one than its own where it was not decoded.
        refused: packets that the decoder gave an error for.
    """

    frames: Frames
    sources: tuple[int, ...]
    refused: int

    @property
    def missing(self) -> int:
        """Number of frames that the decoder did not give."""
        return sum(i != source for i, source in enumerate(self.sources))


def need(codec: Codec, attack: str) -> None:
    """Check that a codec can be used.

    Raises:
        ComponentUnavailable: naming what this build of the libraries lacks.
    """
    import av

    parts: tuple[tuple[str, str, Literal["w", "r"]], ...] = (
        ("encoder", codec.encoder, "w"),
        ("decoder", codec.decoder, "r"),
    )
    for what, name, mode in parts:
        try:
            av.Codec(name, mode)
        except ValueError as error:
            raise ComponentUnavailable(
                f"attack {attack!r} is not available: the FFmpeg libraries of PyAV "
                f"{av.__version__} have no {what} {name!r}; wheels from the package index have it: "
                "pip install --force-reinstall --only-binary av av"
            ) from error


def encoded(
    frames: Frames, fps: Fraction | None, codec: Codec, *, bit_rate: int | None = None
) -> Stream:
    """Return the coded video; chroma has half the resolution, as in nearly all files.

    Args:
        frames: ``[F, H, W, 3]`` uint8 of any size.
        fps: frames per second; 25 where it is not known.
        codec: what to encode with.
        bit_rate: bits per second, if the quality is not set by options.
    """
    import av
    from av.codec.context import Flags

    height, width = (_whole_blocks(side) for side in frames.shape[1:3])
    context = cast("VideoCodecContext", av.CodecContext.create(codec.encoder, "w"))
    rate = (fps if codec.any_rate else None) or _ASSUMED_RATE
    context.width, context.height = width, height
    context.pix_fmt = "yuv420p"
    context.framerate, context.time_base = rate, 1 / rate
    context.thread_count = 1
    context.flags |= Flags.global_header
    context.options = codec.options_for(height, width)
    if bit_rate is not None:
        context.bit_rate = bit_rate
    packets = []
    for i, pixels in enumerate(_padded(frame, height, width) for frame in frames):
        frame = av.VideoFrame.from_ndarray(pixels, format="rgb24").reformat(format="yuv420p")
        frame.pts, frame.time_base = i, context.time_base
        packets += context.encode(frame)
    packets += context.encode(None)
    return Stream(
        tuple(Packet(bytes(p), p.pts or 0, p.dts or 0) for p in packets),
        bytes(context.extradata or b""),
        codec.decoder,
        (len(frames), frames.shape[1], frames.shape[2]),
    )


def decoded(stream: Stream, packets: Sequence[Packet] | None = None) -> Decoded:
    """Return the frames of a stream; those that are lost repeat the last one that is not.

    Args:
        stream: what was encoded.
        packets: what arrived, if that is something else than ``stream.packets``.
    """
    import av
    from av.codec.context import Flags

    context = cast("VideoCodecContext", av.CodecContext.create(stream.decoder, "r"))
    context.thread_count = 1
    context.flags |= Flags.output_corrupt
    if stream.extradata:
        context.extradata = stream.extradata
    count, height, width = stream.shape
    frames = np.zeros((count, height, width, 3), np.uint8)
    good = np.zeros(count, bool)
    refused = 0
    arrived = stream.packets if packets is None else packets
    for packet in [*arrived, None]:
        try:
            pictures = context.decode(None if packet is None else _for_decoder(packet))
        except av.FFmpegError:
            # Damage that cannot be concealed; a player goes on with the next packet, too.
            refused += 1
            continue
        for picture in pictures:
            if picture.pts is None or not 0 <= picture.pts < count:
                continue
            pixels = picture.to_ndarray(format="rgb24")[:height, :width]
            # Damage can also be in what states the size.
            if pixels.shape == frames.shape[1:]:
                frames[picture.pts], good[picture.pts] = pixels, True
    return Decoded(frames, _without_gaps(frames, good), refused)


def _for_decoder(packet: Packet) -> AvPacket[Any]:
    import av

    made: AvPacket[Any] = av.Packet(packet.data)
    made.pts, made.dts = packet.pts, packet.dts
    return made


def _without_gaps(frames: Frames, good: NDArray[np.bool_]) -> tuple[int, ...]:
    """Fill frames that are missing with the last good one, in place; return what each shows.

    Where nothing at all arrived, a player shows black.
    """
    if not good.any():
        return (-1,) * len(frames)
    places = np.flatnonzero(good)
    sources = places[(np.searchsorted(places, np.arange(len(frames)), side="right") - 1).clip(0)]
    for i in np.flatnonzero(~good):
        frames[i] = frames[sources[i]]
    return tuple(sources.tolist())


def _whole_blocks(side: int) -> int:
    return max(_SMALLEST, side + -side % _BLOCK)


def _padded(frame: Frames, height: int, width: int) -> Frames:
    """Return a frame ``[H, W, 3]`` at a larger size, its last row and column repeated."""
    down, right = height - frame.shape[0], width - frame.shape[1]
    if down == right == 0:
        return np.ascontiguousarray(frame)
    return np.pad(frame, ((0, down), (0, right), (0, 0)), mode="edge")
