"""Neighbouring clips."""

from __future__ import annotations

from fractions import Fraction

import pytest
from vcr_attacks.natural_shift import NaturalShift
from vcr_attacks.params.natural import NaturalShiftParams
from vcr_core.errors import IncompatibleComponents, VideoSkipped
from vcr_core.video.sampling import SamplingPlan, make_plan


def shift(steps, **params):
    return NaturalShift(NaturalShiftParams(steps=steps, **params))


def middle(count):
    return make_plan(count, frames=4, stride=2, policy="center")


@pytest.mark.parametrize(
    ("fps", "steps", "frames"),
    [(30, 1, 2), (30, -3, -6), (15, 5, 5), (25, 1, 2), (25, 2, 3), (25, 3, 5), (60, -1, -4),
     (Fraction(30000, 1001), 5, 10)],
)  # fmt: skip
def test_steps_are_fifteenths_of_a_second(fps, steps, frames):
    anchor, moved = shift(steps).plans(middle, 200, Fraction(fps))
    assert anchor.table == middle(200).table
    assert moved.table == tuple(tuple(i + frames for i in row) for row in anchor.table)


def test_no_step_is_the_anchor():
    anchor, moved = shift(0).plans(middle, 40, Fraction(6))
    assert anchor == moved


def test_a_step_that_is_no_whole_frame_is_skipped():
    with pytest.raises(VideoSkipped, match="low frame rate"):
        shift(1).plans(middle, 200, Fraction(6))
    anchor, moved = shift(2).plans(middle, 200, Fraction(6))
    assert moved.table[0][0] == anchor.table[0][0] + 1


def test_boundaries():
    """20 frames at 15 a second, a dense clip of 16 from frame 2."""

    def dense(count):
        start = 2 if count == 20 else 0
        row = tuple(min(start + i, count - 1) for i in range(16))
        return SamplingPlan((row,), "dense", count)

    rate = Fraction(15)
    available = []
    for k in (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5):
        try:
            shift(k).plans(dense, 20, rate)
        except VideoSkipped:
            continue
        available.append(k)
    with pytest.raises(VideoSkipped, match="boundary"):
        shift(5).plans(dense, 20, rate)
    assert available == [-2, -1, 1, 2]
    clamped = shift(5, boundary="clamp").plans(dense, 20, rate)[1]
    assert clamped.table[0][-1] == 19
    with pytest.raises(VideoSkipped):
        shift(1, boundary="center-crop").plans(dense, 10, rate)
    for k in (-5, 5):
        anchor, moved = shift(k, boundary="center-crop").plans(dense, 26, rate)
        assert anchor.table[0] == tuple(range(5, 21))
        assert moved.table[0] == tuple(range(5 + k, 21 + k))


def test_all_clips_move_together():
    plan = lambda count: make_plan(count, frames=4, clips=3)  # noqa: E731
    anchor, moved = shift(1, boundary="center-crop").plans(plan, 100, Fraction(30))
    gaps = {b - a for x, y in zip(anchor.table, moved.table, strict=True)
            for a, b in zip(x, y, strict=True)}  # fmt: skip
    assert gaps == {2}


def test_without_a_frame_rate_frames_are_counted():
    with pytest.raises(IncompatibleComponents, match="unit = 'frame'"):
        shift(1).plans(middle, 50, None)
    anchor, moved = shift(3, unit="frame").plans(middle, 50, None)
    assert moved.table[0][0] == anchor.table[0][0] + 3
