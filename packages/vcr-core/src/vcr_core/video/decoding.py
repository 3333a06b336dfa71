"""One sequential pass over a video: count frames, keep the wanted ones."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from vcr_core.video.opening import (
    READ_ERRORS,
    Media,
    describe,
    missing_end,
    open_media,
    video_stream,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream
    from numpy.typing import NDArray

    from vcr_core.video.info import VideoInfo

ThreadType: TypeAlias = Literal["NONE", "SLICE", "FRAME", "AUTO"]
Wanted: TypeAlias = "NDArray[np.int64] | Callable[[InputContainer, VideoStream], NDArray[np.int64]]"

_HDR_TRANSFERS: Final = frozenset({16, 18})  # PQ and HLG
_BT2020_PRIMARIES: Final = 9


@dataclass(slots=True)
class DecodePass:
    """What one pass over a video found.

    Attributes:
        info: header facts, with rotation and colour tags of the first frame.
        wanted: ``[U]`` ascending frame numbers to keep.
        frames: ``[U, H, W, 3]`` uint8 RGB; only the first ``kept`` are filled.
        pts_s: ``[U]`` float64 seconds, NaN where unknown.
        kept: how many of the wanted frames came.
        count: how many frames came.
        finished: whether the stream's end was reached (not stopped early, no error).
        error: the decoder's message if it failed after ``count`` frames.
        first_unordered: first frame whose time is missing or not above the one before.
        first_resized: first frame of another size than frame 0, and a sentence about it.
        notes: facts about colour and rotation.
    """

    info: VideoInfo
    wanted: NDArray[np.int64]
    frames: NDArray[np.uint8] | None = None
    pts_s: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    kept: int = 0
    count: int = 0
    finished: bool = False
    error: str | None = None
    first_unordered: int | None = None
    first_resized: tuple[int, str] | None = None
    notes: list[str] = field(default_factory=list)


def decode_pass(
    media: Media,
    wanted: Wanted,
    *,
    stop_after: int | None = None,
    autorotate: bool = True,
    thread_count: int = 0,
    thread_type: ThreadType = "SLICE",
) -> DecodePass:
    """Decode sequentially in the decoder's output order, which is the order of presentation.

    Time stamps are never used for ordering: real files have wrong ones. Frames that are not wanted
    are counted without colour conversion.

    Args:
        media: file or content.
        wanted: ``[U]`` ascending frame numbers, or what chooses them from the open container.
        stop_after: number of the last frame to decode; ``None`` for all.
        autorotate: whether to turn frames upright.
        thread_count: decoder threads, 0 for the library's choice.
        thread_type: how the decoder may use threads; none of them changes a pixel.

    Raises:
        VideoReadError: if the container does not open or has no video stream.
    """
    with open_media(media) as container:
        stream = video_stream(container, media)
        stream.thread_type = thread_type
        stream.codec_context.thread_count = thread_count
        chosen = wanted(container, stream) if callable(wanted) else wanted
        result = DecodePass(describe(container, stream, media), chosen)
        result.pts_s = np.full(len(chosen), np.nan)
        _consume(container, stream, result, stop_after, autorotate=autorotate)
        if result.finished and (cut := missing_end(container, stream)):
            result.finished, result.error = False, cut
        return result


def _consume(
    container: InputContainer,
    stream: VideoStream,
    result: DecodePass,
    stop_after: int | None,
    *,
    autorotate: bool,
) -> None:
    wanted = result.wanted.tolist()
    next_wanted = wanted[0] if wanted else -1
    size: tuple[int, int] | None = None
    last_pts: int | None = None
    try:
        for index, frame in enumerate(_frames(container, stream)):
            if size is None:
                size = (frame.width, frame.height)
                _describe_first(frame, result, autorotate=autorotate)
            pts = frame.pts
            if result.first_unordered is None:
                if pts is None or (last_pts is not None and pts <= last_pts):
                    result.first_unordered = index
                last_pts = pts
            if frame.is_corrupt:
                result.error = f"the decoder flagged frame {index} as damaged"
                return
            if (frame.width, frame.height) != size:
                if result.first_resized is None:
                    now, before = f"{frame.width}x{frame.height}", f"{size[0]}x{size[1]}"
                    text = f"frame {index} is {now}, frame 0 was {before}"
                    result.first_resized = (index, text)
            elif index == next_wanted:
                _keep(frame, result, autorotate=autorotate)
                next_wanted = wanted[result.kept] if result.kept < len(wanted) else -1
            result.count = index + 1
            if index == stop_after:
                return
        result.finished = True
    except READ_ERRORS as error:
        result.error = f"{type(error).__name__}: {error}"


def _frames(container: InputContainer, stream: VideoStream) -> Iterator[VideoFrame]:
    """Yield every frame, those still inside the decoder at an error or at the end included."""
    packets = container.demux(stream)
    failure: BaseException | None = None
    expected: list[int] = []
    last = -(2**63)
    while failure is None:
        try:
            packet = next(packets, None)
            if packet is None:
                break
            if packet.pts is not None and not packet.is_discard:
                expected.append(packet.pts)
            if packet.is_corrupt:
                failure = ValueError("the container holds only a part of a packet")
                break
            # An empty packet in the middle (a "dropped frame" of AVI) would drain the decoder.
            decoded = packet.decode() if packet.size else []
        except READ_ERRORS as error:
            failure = error
        else:
            yield from decoded
            if decoded and decoded[-1].pts is not None:
                last = decoded[-1].pts
    try:
        rest = stream.decode(None)
    except READ_ERRORS as error:
        failure = failure or error
        rest = []
    for frame in rest:
        # After damage, a frame whose predecessor was lost would get its predecessor's number.
        if failure is not None and _follows_gap(frame.pts, last, expected):
            break
        yield frame
        last = frame.pts if frame.pts is not None else last
    if failure is not None:
        raise failure


def _follows_gap(pts: int | None, last: int, expected: list[int]) -> bool:
    return pts is None or pts <= last or any(last < other < pts for other in expected)


def _keep(frame: VideoFrame, result: DecodePass, *, autorotate: bool) -> None:
    picture = frame.to_ndarray(format="rgb24")
    turn = frame.rotation if autorotate else 0
    if turn % 90 == 0 and turn % 360:
        picture = np.rot90(picture, k=turn // 90)
    if result.frames is None:
        result.frames = np.empty((len(result.wanted), *picture.shape), dtype=np.uint8)
    if picture.shape != result.frames.shape[1:]:
        # Same stored size, but the rotation changed on the way.
        text = f"frame {result.count} is turned differently from the frames before"
        result.first_resized = result.first_resized or (result.count, text)
        return
    result.frames[result.kept] = picture
    if frame.time is not None:
        result.pts_s[result.kept] = frame.time
    result.kept += 1


def _describe_first(frame: VideoFrame, result: DecodePass, *, autorotate: bool) -> None:
    result.info = replace(
        result.info,
        width=frame.width,
        height=frame.height,
        rotation=frame.rotation % 360,
        pix_fmt=frame.format.name,
        colorspace=int(frame.colorspace),
        color_range=int(frame.color_range),
    )
    if autorotate and frame.rotation % 90:
        result.notes.append(
            f"rotation by {frame.rotation} degrees is no multiple of 90: not applied"
        )
    if int(frame.color_trc) in _HDR_TRANSFERS or int(frame.color_primaries) == _BT2020_PRIMARIES:
        result.notes.append("high dynamic range or BT.2020 colours: no tone mapping is done")
