"""Real encoded files for tests, each frame carrying its own number in black and white cells."""

from __future__ import annotations

import struct
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

COLUMNS, ROWS = 5, 2
SIZE = (64, 80)  # height, width
BLACK, WHITE = 40, 210
X264 = {"preset": "ultrafast", "crf": "18"}


def picture(number: int, size: tuple[int, int] = SIZE) -> NDArray[np.uint8]:
    """Return ``[H, W, 3]`` with ``number`` (10 bits) as a 2x5 grid of black and white cells."""
    height, width = size
    image = np.zeros((height, width, 3), dtype=np.uint8)
    for bit in range(COLUMNS * ROWS):
        rows, columns = _cell(bit, size)
        image[rows, columns] = WHITE if number >> bit & 1 else BLACK
    return image


def number_of(image: NDArray[np.uint8]) -> int:
    """Return the number that a decoded picture carries; the middle of each cell decides."""
    size = image.shape[:2]
    number = 0
    for bit in range(COLUMNS * ROWS):
        rows, columns = _cell(bit, (size[0], size[1]), margin=0.25)
        number |= int(image[rows, columns].mean() > (BLACK + WHITE) / 2) << bit
    return number


def numbers_of(frames: NDArray[np.uint8]) -> list[int]:
    """Return the numbers of all frames."""
    return [number_of(frame) for frame in frames]


def _cell(bit: int, size: tuple[int, int], margin: float = 0.0) -> tuple[slice, slice]:
    row, column = divmod(bit, COLUMNS)
    spans = []
    for position, parts, length in ((row, ROWS, size[0]), (column, COLUMNS, size[1])):
        low, high = position * length / parts, (position + 1) * length / parts
        inset = (high - low) * margin
        spans.append(slice(int(low + inset), int(high - inset)))
    return spans[0], spans[1]


def encode(
    path: Path,
    count: int = 24,
    *,
    codec: str = "libx264",
    pix_fmt: str = "yuv420p",
    options: dict[str, str] | None = None,
    size: tuple[int, int] = SIZE,
    rate: int = 25,
    times: list[int] | None = None,
    rotation: int | None = None,
    container: str | None = None,
    container_options: dict[str, str] | None = None,
    images: list[NDArray[np.uint8]] | None = None,
    color_range: int | None = None,
) -> Path:
    """Encode numbered pictures (or ``images``); ``times`` are in units of 1/1000 s."""
    images = images or [picture(number, size) for number in range(count)]
    with av.open(
        f"file:{path}", "w", format=container, container_options=container_options or {}
    ) as output:
        stream = output.add_stream(codec, rate=rate, options=dict(options or {}))
        stream.height, stream.width = images[0].shape[:2]
        stream.pix_fmt = pix_fmt
        stream.thread_count = 1
        if color_range is not None:
            stream.codec_context.color_range = color_range
        if times is not None:
            stream.codec_context.time_base = Fraction(1, 1000)
        if rotation is not None:
            stream.set_display_rotation(rotation)
        for index, image in enumerate(images):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
            if color_range is not None:
                frame = frame.reformat(format=pix_fmt, dst_color_range=color_range)
            if times is not None:
                frame.pts, frame.time_base = times[index], Fraction(1, 1000)
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return path


def h264(path: Path, count: int = 24, *, b_frames: int = 0, **more: Any) -> Path:
    """Encode H.264 with exactly so many B-frames between references."""
    options = {
        "preset": "veryfast",
        "crf": "20",
        "x264-params": f"bframes={b_frames}:b-adapt=0:scenecut=0:keyint=250",
    }
    return encode(path, count, options=options, **more)


def audio_only(path: Path) -> Path:
    """Write half a second of silence without pictures."""
    with av.open(str(path), "w") as output:
        stream = output.add_stream("pcm_s16le", rate=8000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 4000), np.int16), layout="mono")
        frame.sample_rate = 8000
        output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return path


def cut(path: Path, source: Path, fraction: float) -> Path:
    """Keep only the first part of a file's bytes."""
    data = source.read_bytes()
    path.write_bytes(data[: int(len(data) * fraction)])
    return path


def damage(path: Path, source: Path, *, length: int = 400, at: float = 0.6) -> Path:
    """Overwrite bytes in the middle of a file with noise."""
    data = bytearray(source.read_bytes())
    start = int(len(data) * at)
    data[start : start + length] = np.random.default_rng(1).bytes(length)
    path.write_bytes(bytes(data))
    return path


def claim_frames(path: Path, source: Path, claimed: int) -> Path:
    """Change the number of frames that an AVI file's headers state."""
    data = bytearray(source.read_bytes())
    main, stream = data.index(b"avih") + 8, data.index(b"strh") + 8
    struct.pack_into("<I", data, main + 16, claimed)
    struct.pack_into("<I", data, stream + 32, claimed)
    path.write_bytes(bytes(data))
    return path


def remux(
    path: Path,
    source: Path,
    *,
    shift: int = 0,
    container_options: dict[str, str] | None = None,
    extra: list[tuple[int, bytes]] | None = None,
    pts: list[int] | None = None,
) -> Path:
    """Copy packets: shifted in time, with wrong times, or with extra ``(position, bytes)``."""
    with (
        av.open(str(source)) as given,
        av.open(str(path), "w", container_options=container_options or {}) as output,
    ):
        from_stream = given.streams.video[0]
        to_stream = output.add_stream_from_template(from_stream)
        packets = [packet for packet in given.demux(from_stream) if packet.size]
        unit = packets[0].duration or 1
        inserted = dict(extra or [])
        clock = 0
        for position, packet in enumerate(packets):
            if position in inserted:
                added = av.Packet(inserted[position])
                added.pts = added.dts = clock
                added.time_base = from_stream.time_base
                added.stream = to_stream
                output.mux(added)
                clock += unit
            packet.stream = to_stream
            if inserted:
                packet.pts = packet.dts = clock
                clock += unit
            elif pts is not None:
                # Decoding times must not lie behind presentation times; nobody reads them.
                packet.dts, packet.pts = position, pts[position] + len(packets)
            else:
                packet.dts -= shift
                packet.pts -= shift
            output.mux(packet)
        if len(packets) in inserted:
            added = av.Packet(inserted[len(packets)])
            added.pts = added.dts = clock
            added.time_base = from_stream.time_base
            added.stream = to_stream
            output.mux(added)
    return path


PLACEHOLDER = b"\x00\x00\x01\xb6" + bytes([0b01010000, 0b11001111])
"""An MPEG-4 picture of 6 bytes that is "not coded": a packet without a frame."""
