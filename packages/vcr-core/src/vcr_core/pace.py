"""How fast videos are done, from the times at which records say that they were finished."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

RECENT = 100
"""The pace is that of so many records, or of more where several files are written at once."""

SKEW_S = 300.0
"""Clocks of machines may differ by so much; what is later than that has a wrong time."""

PAUSE_S = 600.0
"""A gap counts as an interruption if it is longer than this and than :data:`PAUSE_FACTOR` gaps."""

PAUSE_FACTOR = 20.0


def recent_ends(
    files: Iterable[Sequence[Any]], *, now: float, batch_videos: int = 1
) -> tuple[float, ...]:
    """Return when the most recent records of a run were finished, in order.

    Args:
        files: the ``t_end`` of the records of each file, in the order of writing. What cannot be
            read as a time is passed over, what lies in the future too. Where a clock was set back,
            only what comes after that counts.
        now: the present.
        batch_videos: how many records are written together.

    Returns:
        Seconds since the epoch.
    """
    files = [ends for ends in files if ends]
    # Some batches of each file, or one batch of a fast worker would be all that is looked at.
    count = max(RECENT, 4 * batch_videos * len(files))
    return newest_ends((_steady(ends[-count:], now + SKEW_S) for ends in files), count)


def newest_ends(several: Iterable[Sequence[float]], count: int = RECENT) -> tuple[float, ...]:
    """Return the newest ``count`` of several sequences of times, in order."""
    return tuple(sorted(end for ends in several for end in ends)[-count:])


def videos_per_hour(ends: Sequence[float]) -> float | None:
    """Return the pace, or ``None`` if the times do not tell.

    Interruptions are left out, with what was finished right after them.

    Args:
        ends: seconds since the epoch, in order.

    Example:
        >>> videos_per_hour([0, 60, 120, 180])
        60.0
        >>> videos_per_hour([5, 5, 5]) is None
        True
    """
    counts: dict[float, int] = {}
    for end in ends:
        counts[end] = counts.get(end, 0) + 1
    gaps = [(later - earlier, counts[later]) for earlier, later in pairwise(counts)]
    if not gaps:
        return None
    middle = sorted(gap for gap, _ in gaps)[len(gaps) // 2]
    longest = max(PAUSE_S, PAUSE_FACTOR * middle)
    kept = [(gap, count) for gap, count in gaps if gap <= longest]
    seconds = math.fsum(gap for gap, _ in kept)
    done = sum(count for _, count in kept)
    return 3600 * done / seconds if seconds >= 0.001 * done and done else None


def _steady(ends: Sequence[Any], latest: float) -> list[float]:
    found: list[float] = []
    for end in ends:
        seconds = _seconds(end)
        if seconds is None or seconds > latest:
            continue
        if found and seconds < found[-1]:
            found.clear()
        found.append(seconds)
    return found


def _seconds(text: Any) -> float | None:
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
