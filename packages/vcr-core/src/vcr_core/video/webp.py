"""Animated WebP, which FFmpeg does not decode; Pillow does, where it is installed."""

from __future__ import annotations

import io
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from vcr_core.video.info import Clip, VideoInfo, VideoReadError
from vcr_core.video.opening import Media, display_name
from vcr_core.video.planning import ask, untimed_clip, usable_count
from vcr_core.video.sampling import SamplingPlan

if TYPE_CHECKING:
    from vcr_core.protocols import Sampler

_HEADER: Final = 21
_ANIMATION: Final = 0x02


def is_animated_webp(media: Media) -> bool:
    """Return whether the extended header of a WebP file announces an animation."""
    if isinstance(media, bytes):
        head = media[:_HEADER]
    else:
        try:
            with media.open("rb") as file:
                head = file.read(_HEADER)
        except OSError:
            return False  # opening it for decoding gives the message
    is_webp = head[:4] == b"RIFF" and head[8:16] == b"WEBPVP8X" and len(head) == _HEADER
    return is_webp and bool(head[20] & _ANIMATION)


def probe_webp(media: Media) -> VideoInfo:
    """Return size and number of frames; the first frame is decoded on the way.

    Raises:
        VideoReadError: if Pillow is missing or cannot read the file.
    """
    return read_webp(media, _first_frame, 1, None).info


def _first_frame(_count: int) -> SamplingPlan:
    return SamplingPlan(((0,),), "first", 1)


def read_webp(
    media: Media, sampler: Sampler, max_frames: int | None, expected_frames: int | None
) -> Clip:
    """Return the frames of the sampler's plan; transparent pixels lose their alpha.

    Raises:
        VideoReadError: if Pillow is missing or cannot read the file.
    """
    name = display_name(media)
    try:
        from PIL import Image, ImageSequence, __version__
    except ImportError as error:
        raise VideoReadError(name, "open", "animated WebP needs Pillow: install pillow") from error
    try:
        with Image.open(io.BytesIO(media) if isinstance(media, bytes) else media) as image:
            total = int(getattr(image, "n_frames", 1))
            count = usable_count(name, total, max_frames, expected_frames)
            plan = ask(sampler, count, name)
            wanted = set(plan.distinct.tolist())
            frames = [
                np.asarray(frame.convert("RGB"))
                for index, frame in enumerate(islice(ImageSequence.Iterator(image), count))
                if index in wanted
            ]
            width, height = image.size
    except (OSError, ValueError, EOFError, SyntaxError, MemoryError) as error:
        raise VideoReadError(name, "decode", error) from error
    info = VideoInfo(
        path=name,
        width=width,
        height=height,
        codec="webp",
        container="webp",
        rotation=0,
        header_frames=total,
    )
    return untimed_clip(np.stack(frames), plan, info, f"pillow {__version__}")
