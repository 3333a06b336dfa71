"""Copies of clips for looking at in a browser; lossy, so never scored."""

from __future__ import annotations

import io
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

import av
import numpy as np
from av.filter import Graph

from vcr_core.atomic import replacing
from vcr_core.errors import UsageError
from vcr_core.video.writer import check_frames, checked_rate, encode

if TYPE_CHECKING:
    from numpy.typing import NDArray

PreviewFormat: TypeAlias = Literal["mp4", "webm", "gif"]

_MARK: Final = "_preview"
_NEUTRAL: Final = 128
_H264: Final = {"crf": "18", "preset": "veryfast"}
# One thread: the bytes then depend on the frames alone.
_VP9: Final = {"crf": "24", "b": "0", "deadline": "good", "cpu-used": "4", "threads": "1"}


def preview_path(path: Path) -> Path:
    """Return ``path`` with ``_preview`` in its name and the suffix ``.mp4``.

    Example:
        >>> from pathlib import Path
        >>> preview_path(Path("a/clip.mkv")).as_posix()
        'a/clip_preview.mp4'
    """
    stem = path.stem if _MARK in path.stem else path.stem + _MARK
    return path.with_name(stem + ".mp4")


def write_preview(path: Path, frames: NDArray[np.uint8], *, fps: Fraction | None = None) -> Path:
    """Write an H.264 file that browsers play, and return its path (:func:`preview_path`).

    Args:
        path: where to write; the name is changed if it does not say that this is a preview.
        frames: ``[T, H, W, 3]`` uint8 RGB; odd sides get one more row or column of gray.
        fps: frame rate; 25 where it does not matter.

    Raises:
        UsageError: for another type or shape, or a rate that is not positive.
    """
    check_frames(frames)
    rate = checked_rate(fps)
    target = preview_path(path)
    with replacing(target) as temporary:
        _write_h264(temporary, frames, rate)
    return target


def encode_preview(
    frames: NDArray[np.uint8], fps: float, *, format: PreviewFormat = "mp4", scale: int = 1
) -> bytes:
    """Return a small file that browsers play.

    Args:
        frames: ``[T, H, W, 3]`` uint8 RGB; odd sides get one more row or column of gray, except
            in a GIF.
        fps: frame rate in Hz.
        format: ``mp4`` (H.264, plays nearly everywhere), ``webm`` (VP9, which every build of
            FFmpeg and every browser has) or ``gif`` (256 colours, rates of 100/n Hz only).
        scale: every pixel becomes ``scale`` by ``scale`` pixels. Enlarging small clips keeps
            their pixels apart: the video formats store colour at half the resolution.

    Raises:
        UsageError: for another type or shape, a rate or scale that is not positive, or another
            format.
    """
    check_frames(frames)
    rate = checked_rate(Fraction(fps))
    if scale < 1:
        raise UsageError(f"the scale must be 1 or more, got {scale}")
    frames = frames.repeat(scale, axis=1).repeat(scale, axis=2)
    if format == "gif":
        return _gif(frames, rate)
    if format == "mp4":
        # The index can move to the front of a file only.
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "preview.mp4"
            _write_h264(path, frames, rate)
            return path.read_bytes()
    buffer = io.BytesIO()
    if format == "webm":
        # Without this the file holds a random identifier.
        with av.open(buffer, "w", format="webm", options={"fflags": "+bitexact"}) as container:
            encode(
                container,
                pad_to_even(frames),
                rate,
                codec="libvpx-vp9",
                pix_fmt="yuv420p",
                options=_VP9,
            )
    else:
        raise UsageError(f"previews are mp4, webm or gif, not {format!r}")
    return buffer.getvalue()


def _write_h264(path: Path, frames: NDArray[np.uint8], rate: Fraction) -> None:
    options = {"movflags": "+faststart"}
    with av.open(f"file:{path}", "w", format="mp4", container_options=options) as container:
        # yuv420p: browsers play nothing else.
        encode(
            container,
            pad_to_even(frames),
            rate,
            codec="libx264",
            pix_fmt="yuv420p",
            options=_H264,
        )


def _gif(frames: NDArray[np.uint8], rate: Fraction) -> bytes:
    """Return an endless GIF with one palette for the whole clip."""
    height, width = frames.shape[1:3]
    rgb = av.VideoFormat("rgb24", width, height)
    graph = Graph()
    source = graph.add_buffer(width=width, height=height, format=rgb, time_base=1 / rate)
    split = graph.add("split")
    palette = graph.add("palettegen", "stats_mode=full")
    use = graph.add("paletteuse", "dither=bayer")
    sink = graph.add("buffersink")
    source.link_to(split)
    split.link_to(palette, 0, 0)
    split.link_to(use, 1, 0)
    palette.link_to(use, 0, 1)
    use.link_to(sink)
    graph.configure()
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="gif", options={"loop": "0"}) as container:
        stream = container.add_stream("gif", rate=rate)
        if not isinstance(stream, av.VideoStream):
            raise UsageError("this build of FFmpeg writes no GIF")
        stream.height, stream.width, stream.pix_fmt = height, width, "pal8"
        for number, picture in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
            frame.pts, frame.time_base = number, 1 / rate
            source.push(frame)
        source.push(None)
        for _ in frames:
            container.mux(stream.encode(cast("av.VideoFrame", sink.pull())))
        container.mux(stream.encode(None))
    return buffer.getvalue()


def pad_to_even(frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return ``[T, H, W, 3]`` with even sides, extended by gray below and to the right."""
    height, width = frames.shape[1:3]
    padding = ((0, 0), (0, height % 2), (0, width % 2), (0, 0))
    return np.pad(frames, padding, constant_values=_NEUTRAL)
