"""Eight scores of a video, one for each way to tamper with it, and where each one is found."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from vcr_models.detectors.signals import FLOOR

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from vcr_models.detectors.signals import Signals

    Flags = NDArray[np.bool_]

PAIR: Final = 1.5
"""Two jumps stand out if they exceed the others by so many times the usual difference."""

_BLACK: Final = (10.0, 6.0)
_ABRUPT: Final = 20.0
_MERGED: Final = 3
_APART_S: Final = 0.25
_STRONGEST: Final = 6
_MOVING: Final = 0.30
_AREA: Final = 0.45
_BRIDGED: Final = 3.0
_BRIDGE: Final = 1.2


@dataclass(frozen=True, slots=True)
class Found:
    """One score.

    Attributes:
        value: higher = more likely; the unit is that of its threshold.
        start: first frame of what it is about.
        end: the frame after the last one; ``start`` for a cut.
    """

    value: float
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Jump:
    """A place where neighbours differ more than usual.

    Attributes:
        frame: the first frame behind it.
        ratio: how many times more.
    """

    frame: int
    ratio: float


def jumps_of(signals: Signals) -> list[Jump]:
    """Return the jumps, strongest first; of those closer than 3 frames the strongest one."""
    kept: list[Jump] = []
    for index in np.argsort(-signals.jump, kind="stable"):
        frame, ratio = int(index) + 1, float(signals.jump[index])
        if all(abs(frame - other.frame) >= _MERGED for other in kept):
            kept.append(Jump(frame, ratio))
    return kept


def masked(signals: Signals, fps: float) -> Found:
    """Seconds of the longest black stretch with abrupt ends; fades to black do not count."""
    black = (signals.lum < _BLACK[0]) & (signals.sd < _BLACK[1])
    best = Found(0.0)
    for start, end in runs(black):
        edges = [signals.step[i - 1] for i in (start, end) if 0 < i < len(signals)]
        if edges and min(edges) > _ABRUPT and (end - start) / fps > best.value:
            best = Found((end - start) / fps, start, end)
    return best


def rotated(signals: Signals, fps: float) -> Found:
    """By how much a frame fits better to the one before when that is turned by 180 degrees."""
    if not len(signals.turn):
        return Found(0.0)
    first = int(signals.turn.argmax()) + 1
    value = float(signals.turn[first - 1])
    # In a scene that looks alike when it is turned, the other border shows as a jump alone.
    others = [jump for jump in jumps_of(signals) if abs(jump.frame - first) >= _MERGED]
    second = next((j.frame for j in others if signals.turn[j.frame - 1] > value / 2), None)
    if second is None and others and others[0].ratio > _BRIDGED:
        second = others[0].frame
    return Found(value, *_between(signals, first, second))


def repeated(signals: Signals, fps: float) -> Found:
    """Seconds of the longest stretch that is shown again, at a distance of 1/3 to 3 seconds.

    A frame is shown again where the later one differs from it by less than half of what its own
    neighbours do. Frames that hardly differ from their neighbours are left out.
    """
    count = len(signals)
    near = np.full((6, count), np.nan)
    for lag in (1, 2, 3):
        if lag < count:
            apart = signals.lagged(lag)
            near[lag - 1, : count - lag] = apart
            near[lag + 2, lag:] = apart
    if count < 2:
        return Found(0.0)
    middle = np.nanmedian(near, axis=0)
    limit = np.where(middle > _MOVING, 0.5 * middle + 0.15, -1.0)
    best = Found(0.0)
    for lag in range(max(2, round(fps / 3)), min(round(3 * fps), count - 1) + 1):
        again = signals.lagged(lag) < limit[: count - lag]
        start, end = longest(again)
        if (end - start) / fps > best.value:
            best = Found((end - start) / fps, start + lag, end + lag)
    return best


def substituted(signals: Signals, fps: float) -> Found:
    """How much two jumps over most of the picture stand out, or what lies between them does.

    What lies between them does where it differs from both sides, while these agree with each other
    (``min(D[a-1, a], D[b-1, b]) / (D[a-1, b] + 1)``). A scene may go on so far behind a foreign
    stretch that its sides no longer agree; then the two jumps have to stand out by themselves.
    """
    pair = _pair(signals, fps)
    best = Found(0.0)
    if covers_much(signals, pair):
        best = Found(pair.value / PAIR, pair.start, pair.end)
    strongest = [jump for jump in jumps_of(signals)[:_STRONGEST] if jump.ratio > _BRIDGED]
    for one, other in combinations(sorted(strongest, key=lambda jump: jump.frame), 2):
        a, b = one.frame, other.frame
        inside = min(signals.apart(a - 1, a), signals.apart(b - 1, b))
        value = inside / (signals.apart(a - 1, b) + 1) / _BRIDGE
        if value > best.value and covers_much(signals, Found(value, a, b)):
            best = Found(value, a, b)
    return best


def noisy(signals: Signals, fps: float) -> Found:
    """The greatest change of fine detail from one frame to the next, as a logarithm."""
    change = np.abs(np.diff(signals.detail))
    if not len(change):
        return Found(0.0)
    order = np.argsort(-change, kind="stable")
    first = int(order[0]) + 1
    others = (int(i) + 1 for i in order[1:] if abs(int(i) + 1 - first) >= _MERGED)
    second = next((i for i in others if change[i - 1] > change[first - 1] / 2), None)
    return Found(float(change[first - 1]), *_between(signals, first, second))


def partly_covered(signals: Signals, fps: float) -> Found:
    """How much two jumps over a smaller part of the picture stand out over all others."""
    pair = _pair(signals, fps)
    return Found(0.0) if covers_much(signals, pair) else pair


def shuffled(signals: Signals, fps: float) -> Found:
    """How much the neighbours differ over half a second, as a multiple of what is least.

    Medians in the window and the lower quartile of the video: one jump counts for nothing, and
    a shuffled stretch may be half of the video.
    """
    width = min(max(3, round(fps / 2)), len(signals.step))
    if width < 3:
        return Found(0.0)
    windows = np.lib.stride_tricks.sliding_window_view(signals.step, width)
    medians = np.median(windows, axis=1)
    at = int(medians.argmax())
    value = float(medians[at] / (np.quantile(signals.step, 0.25) + FLOOR))
    return Found(value, at, at + width + 1)


def cut(signals: Signals, fps: float) -> Found:
    """How much one jump stands out over all others; two equal ones are no cut."""
    first, second, _ = _strongest(signals)
    return Found(first.ratio - second.ratio, first.frame, first.frame)


def changed_area(signals: Signals, frame: int) -> float:
    """Return the share of pixels that change more at a frame than they usually do there."""
    change = np.abs(np.diff(signals.small, axis=0))
    low, high = max(0, frame - 9), min(len(change), frame + 8)
    around = np.delete(change[low:high], frame - 1 - low, axis=0)
    ordinary = np.median(around, axis=0) if len(around) else np.zeros(change.shape[1])
    return float((change[frame - 1] > 2 * ordinary + 3).mean())


def covers_much(signals: Signals, pair: Found) -> bool:
    """Return whether both jumps of a pair change almost half of the picture."""
    if pair.end <= pair.start:
        return False
    areas = [changed_area(signals, frame) for frame in (pair.start, pair.end)]
    return float(np.mean(areas)) > _AREA


SCORES: Final[dict[str, Callable[[Signals, float], Found]]] = {
    "mask": masked,
    "rotate": rotated,
    "substitute": substituted,
    "local-mask": partly_covered,
    "noise": noisy,
    "shuffle": shuffled,
    "repeat": repeated,
    "drop": cut,
}
"""Effect to score, in the order in which a detector asks."""

THRESHOLDS: Final[dict[str, float]] = {
    "mask": 0.3,
    "rotate": 0.3,
    "substitute": 1.0,
    "local-mask": PAIR,
    "noise": 0.5,
    "shuffle": 2.0,
    "repeat": 0.15,
    "drop": 1.0,
}
"""Above which a score speaks for its effect, where nothing has been fitted."""


def runs(flags: Flags) -> list[tuple[int, int]]:
    """Return begin and end of every stretch of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def _strongest(signals: Signals) -> tuple[Jump, Jump, Jump]:
    """Return the three strongest jumps; those that are missing have ratio 0."""
    first, second, third = [*jumps_of(signals)[:3], *(Jump(0, 0.0),) * 3][:3]
    return first, second, third


def _pair(signals: Signals, fps: float) -> Found:
    """Return by how much the second strongest jump exceeds the third one.

    It is 0 where the two strongest ones are closer than a quarter of a second.
    """
    first, second, third = _strongest(signals)
    start, end = sorted((first.frame, second.frame))
    if end - start <= _APART_S * fps:
        return Found(0.0)
    return Found(second.ratio - third.ratio, start, end)


def longest(flags: Flags) -> tuple[int, int]:
    """Return begin and end of the first longest stretch of true values."""
    return max(runs(flags), key=lambda run: run[1] - run[0], default=(0, 0))


def _between(signals: Signals, first: int, second: int | None) -> tuple[int, int]:
    """Return the stretch between two frames; with one alone, from there to the nearer end."""
    if second is None:
        second = 0 if first < len(signals) / 2 else len(signals)
    return min(first, second), max(first, second)
