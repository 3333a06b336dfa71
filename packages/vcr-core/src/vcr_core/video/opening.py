"""Checking a path, opening a container and choosing its video stream."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import av
import av.error
from av.stream import Disposition

from vcr_core.video.info import VideoInfo, VideoReadError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from av.container import InputContainer
    from av.packet import Packet
    from av.video.stream import VideoStream

Media: TypeAlias = Path | bytes
"""An existing file, or the content of one."""

READ_ERRORS: Final = (av.FFmpegError, OSError, ValueError, IndexError, MemoryError)
"""What PyAV raises for bad media; ``ValueError`` covers ``UnicodeDecodeError``."""

# Playlists (HLS waits for ever for a "live" list to grow), scripts that name other files and text
# rendered as pictures are formats of the library too; a dataset file is never one of them.
_CONTAINERS: Final = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,mpegvideo,m4v,h261,h263,h264,hevc,vvc,"
    "av1,obu,ivf,flv,asf,ogg,nut,mxf,dv,gxf,rm,wtv,vc1,dirac,mjpeg,mjpeg_2000,yuv4mpegpipe,"
    "rawvideo,gif,apng,jpegxl_anim,png_pipe,jpeg_pipe,bmp_pipe,webp_pipe,tiff_pipe,ppm_pipe,"
    "pgm_pipe,jpegxl_pipe,gif_pipe,"
    # sound only: known, so that the error can say that there is no picture
    "wav,mp3,aac,flac"
)


def backend_name() -> str:
    """Return the decoder's name and versions, e.g. ``pyav 18.1.0 (libavcodec 62.28.102)``."""
    codec = ".".join(str(part) for part in av.library_versions["libavcodec"])
    return f"pyav {av.__version__} (libavcodec {codec})"


def display_name(media: Media) -> str:
    """Return what messages call a source: its full path, or the size of in-memory content."""
    return f"<{len(media)} bytes>" if isinstance(media, bytes) else str(media.absolute())


def check_path(path: Path) -> None:
    """Make sure that there is something to read.

    Raises:
        VideoReadError: if nothing exists there, or it is no regular file or folder, or it is empty.
    """
    name = str(path.absolute())
    try:
        state = path.stat()
        if path.is_dir():
            return
        if not path.is_file():
            raise VideoReadError(name, "open", "is neither a file nor a folder")
    except OSError as error:
        raise VideoReadError(name, "open", error) from error
    except ValueError as error:  # a NUL character in the name
        raise VideoReadError(name, "open", error) from error
    if state.st_size == 0:
        raise VideoReadError(name, "open", "the file is empty (0 bytes)")


def open_media(media: Media) -> InputContainer:
    """Open a container for reading; close it with ``with``.

    Raises:
        VideoReadError: with stage ``open`` and the library's own message.
    """
    options = {"format_whitelist": _CONTAINERS}
    # The "file:" prefix keeps ':' and '%' in names from being read as protocols or patterns. A
    # still image goes in as an open file, because by name it would be taken for a numbered series.
    target: str | io.BytesIO
    if isinstance(media, bytes):
        target = io.BytesIO(media)
    elif media.suffix.lower() in IMAGE_SUFFIXES:
        target = io.BytesIO(_content(media))
    else:
        target = f"file:{media}"
    try:
        return av.open(target, "r", metadata_errors="replace", container_options=options)
    except av.error.ArgumentError as error:
        cause = f"not a supported video container ({error})"
        raise VideoReadError(display_name(media), "open", cause) from error
    except READ_ERRORS as error:
        raise VideoReadError(display_name(media), "open", error) from error


IMAGE_SUFFIXES: Final = frozenset(
    {".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".jxl"}
)
"""Names that the library would open as a numbered series of images."""


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise VideoReadError(display_name(path), "open", error) from error


def video_stream(container: InputContainer, media: Media) -> VideoStream:
    """Return the first video stream that is not a cover picture.

    Raises:
        VideoReadError: with stage ``no_video_stream``, e.g. for files with sound only.
    """
    for stream in container.streams.video:
        if not stream.disposition & Disposition.attached_pic:
            return stream
    kinds = ", ".join(stream.type for stream in container.streams) or "none"
    raise VideoReadError(
        display_name(media), "no_video_stream", f"no video among its streams ({kinds})"
    )


def describe(container: InputContainer, stream: VideoStream, media: Media) -> VideoInfo:
    """Return what the headers say; nothing is decoded."""
    duration_s: float | None = None
    if stream.duration is not None and stream.time_base is not None:
        duration_s = float(stream.duration * stream.time_base)
    elif container.duration is not None:
        duration_s = container.duration / av.time_base
    rate = stream.average_rate
    aspect = stream.sample_aspect_ratio
    return VideoInfo(
        path=display_name(media),
        width=stream.codec_context.width,
        height=stream.codec_context.height,
        codec=stream.codec_context.name,
        pix_fmt=stream.codec_context.pix_fmt,
        container=container.format.name,
        nominal_fps=rate if rate else None,
        header_frames=stream.frames or None,
        duration_s=duration_s,
        has_audio=bool(container.streams.audio),
        sample_aspect=aspect if aspect else None,
    )


def likely_count(container: InputContainer, stream: VideoStream, media: Media) -> int | None:
    """Return a guess of the number of frames without decoding; never to be trusted unchecked.

    Where the container holds a full index, its non-empty entries that no edit list discards are
    counted. Otherwise the packets are read through once, in a container of their own, because
    seeking back is not exact in every format.
    """
    entries = stream.index_entries
    if stream.frames and len(entries) == stream.frames:
        return sum(1 for entry in entries if entry.size and not entry.is_discard)
    count = 0
    with open_media(media) as other:
        for packet in _packets(other, stream.index):
            count += bool(packet.size) and not packet.is_discard
    return count or None


def missing_end(container: InputContainer, stream: VideoStream) -> str | None:
    """Return a sentence if an MP4's index proves that the end of the file is missing.

    A file that was cut between two packets would otherwise end without any error.
    """
    if "mp4" not in container.format.name or container.size <= 0:
        return None
    end = max((entry.pos + entry.size for entry in stream.index_entries), default=0)
    if end <= container.size:
        return None
    return f"the file is cut: its index reaches to byte {end}, it has {container.size}"


def _packets(container: InputContainer, index: int) -> Iterator[Packet[Any]]:
    try:
        yield from container.demux(container.streams[index])
    except READ_ERRORS:
        return  # a guess may stop at damage; decoding will meet and report it
