"""Which frames of a video a model looks at: index tables in exact integer arithmetic.

With ``t`` frames in the video, ``L`` frames a clip, stride ``s`` and ``n`` clips:

========================= =========================================================================
policy                    frame ``j`` of clip ``i``
========================= =========================================================================
``center``                ``max(t - S, 0) // 2 + j s`` with span ``S = (L - 1) s + 1``; one clip
``uniform_clips``         ``round(i max(t - S, 0) / (n - 1)) + j s``; one clip: as ``center``
``segment_middle``        the middle of segment ``j`` of ``L``: ``floor(t (j + 1/2) / L)``; with
                          ``n`` clips, the middle of part ``i`` of ``n`` of that segment
``segment_twice``         the middle of segment ``j``, then, as a second clip, its beginning
                          ``floor(j t / L)``
``segment_offsets``       ``round(t (j + (i + 1) / n) / L)``; one clip: ``round(t (j + 1/2) / L)``;
                          past the end the last frame repeats
``sparse``                ``round(j (t - 1) / L) + floor((i + 1) (t - 1) / (L (n + 1)))``
``every_stride``          ``(floor(i max(m - L, 0) / (n - 1)) + j) s`` with ``m = ceil(t / s)``; one
                          clip: ``(floor(max(m - L, 0) / 2) + j) s``; past the end the last of the
                          ``m`` frames repeats
``dense``                 ``(trunc(i (max(1, t - 63) - 1) / (n - 1)) + j (64 // L)) mod t``
``vcrbench``              ``round(i max(0, t - L s) / (n - 1)) + j s``; one clip:
                          ``max(0, t - L s) // 2 + j s``; past the end the last frame repeats
``vcrbench_segments``     ``round(j (t - 1) / (L - 1))``, both ends included; one clip. What
                          ``vcrbench`` means for models that see ``L`` single frames
``all``                   ``j s`` for every ``j``, with the smallest step ``s`` that leaves at most
                          ``L`` frames: every frame of a video that is not too long; one clip
========================= =========================================================================

``round`` takes ties to the even number. In ``center`` and ``uniform_clips``, an index past the end
is taken modulo ``t`` (``end="loop"``) or replaced by ``t - 1`` (``end="clamp"``); the other
policies have an end rule of their own. ``center``, ``uniform_clips``, ``segment_middle``,
``segment_twice``, ``sparse`` and ``dense`` are the test-time rules of mmaction2, ``sparse`` also
that of UniFormerV2, UMT and InternVideo2; ``segment_offsets`` is TAdaFormer's, ``every_stride``
VideoMAE's; the ``vcrbench`` ones are those of the paper's repository.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SamplingPolicy: TypeAlias = Literal[
    "center", "uniform_clips", "segment_middle", "dense", "vcrbench", "vcrbench_segments", "all",
    "segment_twice", "segment_offsets", "sparse", "every_stride",
]  # fmt: skip
EndRule: TypeAlias = Literal["loop", "clamp"]

_DENSE_WINDOW: Final = 64
_ONE_CLIP: Final = frozenset({"center", "vcrbench_segments", "all"})
_NO_STRIDE: Final = frozenset(get_args(SamplingPolicy)) - {
    "center", "uniform_clips", "vcrbench", "every_stride",
}  # fmt: skip


@dataclass(frozen=True)
class SamplingPlan:
    """Frame indices of all clips of one video, and the same as positions among distinct frames.

    Attributes:
        table: ``[V][T']`` frame indices in ``0 .. n_frames - 1``.
        policy: name of the rule that made the table.
        n_frames: number of frames of the video.

    Raises:
        ValueError: if the table is empty or ragged, or an index lies outside the video.

    Example:
        >>> plan = SamplingPlan(table=((4, 6), (6, 8)), policy="center", n_frames=9)
        >>> plan.distinct.tolist(), plan.gather.tolist()
        ([4, 6, 8], [[0, 1], [1, 2]])
    """

    table: tuple[tuple[int, ...], ...]
    policy: str
    n_frames: int

    def __post_init__(self) -> None:
        if not self.table or not self.table[0]:
            raise ValueError("a sampling plan needs at least one frame")
        if any(len(row) != len(self.table[0]) for row in self.table):
            raise ValueError("all clips of a sampling plan must have the same length")
        low = min(min(row) for row in self.table)
        high = max(max(row) for row in self.table)
        if low < 0 or high >= self.n_frames:
            raise ValueError(
                f"the plan asks for frames {low}..{high} of a video with {self.n_frames} frames"
            )

    @cached_property
    def distinct(self) -> NDArray[np.int64]:
        """``[U]`` int64: the frames that occur, each once, in presentation order."""
        return np.unique(np.asarray(self.table, dtype=np.int64))

    @cached_property
    def gather(self) -> NDArray[np.int64]:
        """``[V, T']`` int64: position of every entry of the table in :attr:`distinct`."""
        return np.searchsorted(self.distinct, np.asarray(self.table, dtype=np.int64))


def make_plan(
    n_frames: int,
    *,
    frames: int,
    stride: int = 1,
    clips: int = 1,
    policy: SamplingPolicy = "uniform_clips",
    end: EndRule = "loop",
) -> SamplingPlan:
    """Return the plan of a policy; the rules are at the top of this module.

    Args:
        n_frames: number of frames that the video decodes to, at least 1.
        frames: frames per clip, ``T'``.
        stride: source frames between two frames of a clip; must be 1 for policies that set their
            own distances.
        clips: clips per video, ``V``; must be 1 for ``center``, ``vcrbench_segments`` and ``all``.
        policy: the rule.
        end: what happens past the last frame in ``center`` and ``uniform_clips``.

    Raises:
        ValueError: for a number below 1, an unknown name, or a combination without a meaning.

    Example:
        >>> make_plan(100, frames=4, stride=8, clips=2).table
        ((0, 8, 16, 24), (75, 83, 91, 99))
    """
    _check(n_frames, frames, stride, clips, policy, end)
    if policy == "segment_middle":
        table = _segment_middles(n_frames, frames, clips)
    elif policy == "segment_twice":
        starts = [j * n_frames // frames for j in range(frames)]
        table = [*_segment_middles(n_frames, frames, 1), starts][:clips]
    elif policy == "segment_offsets":
        table = _clamp(_segment_offsets(n_frames, frames, clips), n_frames)
    elif policy == "sparse":
        table = _clamp(_sparse(n_frames, frames, clips), n_frames)
    elif policy == "every_stride":
        table = _every_stride(n_frames, frames, stride, clips)
    elif policy == "dense":
        table = _dense(n_frames, frames, clips)
    elif policy == "vcrbench_segments":
        table = [_starts(n_frames - 1, frames)]
    elif policy == "all":
        table = [list(range(0, n_frames, -(-n_frames // frames)))]
    elif policy == "vcrbench":
        starts = _starts(max(0, n_frames - frames * stride), clips)
        table = _clamp(_strided(starts, frames, stride), n_frames)
    else:
        starts = _starts(max(n_frames - (frames - 1) * stride - 1, 0), clips)
        rows = _strided(starts, frames, stride)
        table = _clamp(rows, n_frames) if end == "clamp" else _loop(rows, n_frames)
    return SamplingPlan(tuple(tuple(row) for row in table), policy, n_frames)


def whole_video(n_frames: int) -> SamplingPlan:
    """Return the plan of one clip that holds every frame once.

    Raises:
        ValueError: if there is no frame.
    """
    return SamplingPlan((tuple(range(n_frames)),), "all", n_frames)


def _check(n_frames: int, frames: int, stride: int, clips: int, policy: str, end: str) -> None:
    numbers = {"n_frames": n_frames, "frames": frames, "stride": stride, "clips": clips}
    for name, value in numbers.items():
        # bool is an int, and a float that happens to be whole hides a mistake.
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    if policy not in get_args(SamplingPolicy):
        known = ", ".join(get_args(SamplingPolicy))
        raise ValueError(f"unknown sampling policy {policy!r}; known are {known}")
    if end not in get_args(EndRule):
        raise ValueError(f"unknown end rule {end!r}; known are {', '.join(get_args(EndRule))}")
    if policy in _ONE_CLIP and clips != 1:
        raise ValueError(f"policy {policy!r} makes one clip, {clips} were asked for")
    if policy == "segment_twice" and clips > 2:
        raise ValueError(f"policy 'segment_twice' makes one or two clips, {clips} were asked for")
    if policy in _NO_STRIDE and stride != 1:
        raise ValueError(
            f"policy {policy!r} sets its own distances; stride must be 1, not {stride}"
        )
    if policy == "dense" and frames > _DENSE_WINDOW:
        raise ValueError(f"policy 'dense' picks from {_DENSE_WINDOW} frames, {frames} is too many")


def _round_half_even(numerator: int, denominator: int) -> int:
    """Return ``numerator / denominator`` rounded, exact for any size of the numbers."""
    whole, rest = divmod(numerator, denominator)
    return whole + (2 * rest > denominator or (2 * rest == denominator and whole % 2 == 1))


def _starts(room: int, clips: int) -> list[int]:
    if clips == 1:
        return [room // 2]
    return [_round_half_even(i * room, clips - 1) for i in range(clips)]


def _strided(starts: list[int], frames: int, stride: int) -> list[list[int]]:
    return [[start + j * stride for j in range(frames)] for start in starts]


def _loop(rows: list[list[int]], n_frames: int) -> list[list[int]]:
    return [[index % n_frames for index in row] for row in rows]


def _clamp(rows: list[list[int]], n_frames: int) -> list[list[int]]:
    return [[min(index, n_frames - 1) for index in row] for row in rows]


def _segment_middles(n_frames: int, segments: int, clips: int) -> list[list[int]]:
    # floor(t/L (j + (2i+1)/(2n))) over a common denominator; one clip gives the plain middle.
    parts = 2 * segments * clips
    return [
        [n_frames * (2 * clips * j + 2 * i + 1) // parts for j in range(segments)]
        for i in range(clips)
    ]


def _segment_offsets(n_frames: int, segments: int, clips: int) -> list[list[int]]:
    parts = segments * max(clips, 2)
    return [
        [_round_half_even(n_frames * (max(clips, 2) * j + i + 1), parts) for j in range(segments)]
        for i in range(clips)
    ]


def _sparse(n_frames: int, segments: int, clips: int) -> list[list[int]]:
    last = n_frames - 1
    offsets = [last * (i + 1) // (segments * (clips + 1)) for i in range(clips)]
    starts = [_round_half_even(last * j, segments) for j in range(segments)]
    return [[start + offset for start in starts] for offset in offsets]


def _every_stride(n_frames: int, frames: int, stride: int, clips: int) -> list[list[int]]:
    count = -(-n_frames // stride)
    room = max(count - frames, 0)
    starts = [room // 2] if clips == 1 else [i * room // (clips - 1) for i in range(clips)]
    return [[min(s + j, count - 1) * stride for j in range(frames)] for s in starts]


def _dense(n_frames: int, frames: int, clips: int) -> list[list[int]]:
    last_start = max(1, 1 + n_frames - _DENSE_WINDOW) - 1
    starts = [i * last_start // max(clips - 1, 1) for i in range(clips)]
    return _loop(_strided(starts, frames, _DENSE_WINDOW // frames), n_frames)
