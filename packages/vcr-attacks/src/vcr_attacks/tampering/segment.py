"""Which frames of a video are tampered with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vcr_core.errors import IncompatibleComponents

if TYPE_CHECKING:
    from fractions import Fraction

    from vcr_core.randomness import VideoRandom

    from vcr_attacks.params.tampering import TamperParams


@dataclass(frozen=True, slots=True)
class Segment:
    """Frames ``start`` to ``end - 1``; empty if nothing is to be changed."""

    start: int
    end: int

    def __len__(self) -> int:
        """Return the number of frames."""
        return self.end - self.start


def segment_of(
    params: TamperParams, count: int, fps: Fraction | None, random: VideoRandom, name: str
) -> Segment:
    """Return the segment of a video.

    ``n = max(1, round(fps · duration))`` frames; in a video shorter than ``2 n`` a third of it, so
    that no index is negative and something is left. ``middle`` starts at ``F // 2 - n // 2``.

    Args:
        params: location and duration.
        count: number of frames of the video, ``F``.
        fps: frames per second.
        random: the video's generator, for location ``random``.
        name: of the operator, for messages.

    Raises:
        IncompatibleComponents: if a duration in seconds is asked for and ``fps`` is not known.
    """
    length = _length(params, count, fps, name)
    room = count - length
    location = params.location
    if location == "start":
        start = 0
    elif location == "end":
        start = room
    elif location == "middle":
        start = count // 2 - length // 2
    elif location == "random":
        start = int(random.child("location").integers(0, room + 1))
    else:
        start = round(float(location) * count - length / 2)
    start = min(max(start, 0), room)
    return Segment(start, start + length)


def _length(params: TamperParams, count: int, fps: Fraction | None, name: str) -> int:
    if params.duration_frames is not None:
        asked = params.duration_frames
    elif params.duration_s == 0:
        asked = 0
    elif fps is None:
        raise IncompatibleComponents(
            f"attack {name!r}: the frame rate of this video is not known; set "
            "attack.duration_frames instead of attack.duration_s"
        )
    else:
        asked = max(1, round(fps * params.duration_s))
    return asked if 2 * asked <= count else count // 3
