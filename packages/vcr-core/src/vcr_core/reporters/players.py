"""All versions of a kept clip side by side in one small video, so that they play in step."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vcr_core.reporters.clips import KeptClip, imaging
from vcr_core.reporters.strips import GAP, GAP_GREY, choose_scale, resize, scale_note

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_FRAMES = 64
DEFAULT_RATE = 8.0
SLOWEST, FASTEST = 4.0, 30.0
ROOMY = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """What stands above one panel of the video."""

    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Player:
    """A video that a browser plays.

    Attributes:
        uri: WebM (VP9) as a ``data:`` address.
        poster: its first frame, JPEG as a ``data:`` address.
        width: width in pixels.
        height: height in pixels.
        shown: width at which it is shown; small clips are enlarged, to leave room for controls.
        captions: one a panel, from the left; all panels are equally wide.
        note: how many frames it has, how fast it plays and how its pixels were scaled.
    """

    uri: str
    poster: str
    width: int
    height: int
    shown: int
    captions: tuple[Caption, ...]
    note: str


def make_player(clip: KeptClip) -> Player | None:
    """Return the clip as a video, or ``None`` where PyAV is not installed to encode it.

    VP9 in WebM: every current browser plays it, every build of FFmpeg has it, and it is free of
    licences. It loses a little of the noise; the strips of frames do not.
    """
    try:
        from vcr_core.video.preview import encode_preview
    except ImportError:
        return None
    frames = _side_by_side(clip)
    rate = min(max(clip.rate or DEFAULT_RATE, SLOWEST), FASTEST)
    shown = len(frames)
    note = f"{shown} frames" if shown == clip.total else f"the first {shown} of {clip.total} frames"
    video = encode_preview(frames, rate, format="webm")
    return Player(
        uri="data:video/webm;base64," + base64.b64encode(video).decode("ascii"),
        poster=_poster(frames[0]),
        width=frames.shape[2],
        height=frames.shape[1],
        shown=frames.shape[2] * (2 if frames.shape[1] < ROOMY else 1),
        captions=tuple(Caption(title=view.title, text=view.caption) for view in clip.views),
        note=f"{note}, {rate:.3g} a second; {scale_note(choose_scale(*clip.size), *clip.size)}",
    )


def _poster(frame: NDArray[np.uint8]) -> str:
    _, image = imaging()
    buffer = io.BytesIO()
    image.fromarray(frame).save(buffer, format="JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _side_by_side(clip: KeptClip) -> NDArray[np.uint8]:
    """Return ``[T, H, W, 3]``: the versions from left to right, in panels of the clean size."""
    np, _ = imaging()
    scale = choose_scale(*clip.size)
    total = min(clip.total, MAX_FRAMES)
    versions = [
        np.stack([resize(view.frames[min(i, len(view.frames) - 1)], scale) for i in range(total)])
        for view in clip.views
    ]
    height, width = versions[0].shape[1:3]
    canvas: NDArray[Any] = np.full(
        (total, height, len(versions) * (width + GAP) - GAP, 3), GAP_GREY, np.uint8
    )
    for position, version in enumerate(versions):
        left = position * (width + GAP)
        part = version[:, :height, :width]
        canvas[:, : part.shape[1], left : left + part.shape[2]] = part
    return canvas
