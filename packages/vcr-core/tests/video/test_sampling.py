"""Index tables: golden values for every policy, and properties that hold for all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vcr_core.video.sampling import SamplingPlan, make_plan, whole_video

CLIP = {"frames": 16, "stride": 4}  # span 61

SHORT_LOOP = {
    1: [0] * 16,
    3: [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0],
    7: [0, 4, 1, 5, 2, 6, 3, 0, 4, 1, 5, 2, 6, 3, 0, 4],
    15: [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 0],
    16: [0, 4, 8, 12] * 4,
    17: [0, 4, 8, 12, 16, 3, 7, 11, 15, 2, 6, 10, 14, 1, 5, 9],
}
SHORT_CLAMP = {
    1: [0] * 16,
    3: [0] + [2] * 15,
    7: [0, 4] + [6] * 14,
    15: [0, 4, 8, 12] + [14] * 12,
    16: [0, 4, 8, 12] + [15] * 12,
    17: [0, 4, 8, 12, 16] + [16] * 11,
}


@pytest.mark.golden
@pytest.mark.parametrize("n_frames", SHORT_LOOP)
@pytest.mark.parametrize("policy", ["center", "uniform_clips"])
def test_short_videos_loop_or_clamp_as_asked(n_frames, policy):
    looped = make_plan(n_frames, **CLIP, policy=policy, end="loop")
    clamped = make_plan(n_frames, **CLIP, policy=policy, end="clamp")
    assert looped.table == (tuple(SHORT_LOOP[n_frames]),)
    assert clamped.table == (tuple(SHORT_CLAMP[n_frames]),)


@pytest.mark.golden
@pytest.mark.parametrize(
    ("n_frames", "start"), [(60, 0), (61, 0), (62, 0), (63, 1), (72, 5), (73, 6), (300, 119)]
)
def test_center_start(n_frames, start):
    expected = [(start + 4 * j) % n_frames for j in range(16)]
    assert make_plan(n_frames, **CLIP, policy="center").table == (tuple(expected),)


@pytest.mark.golden
@pytest.mark.parametrize(
    ("n_frames", "clips", "starts"),
    [
        (72, 3, [0, 6, 11]),  # 5.5 goes to the even 6
        (73, 3, [0, 6, 12]),
        (74, 3, [0, 6, 13]),  # 6.5 goes to the even 6
        (300, 10, [0, 27, 53, 80, 106, 133, 159, 186, 212, 239]),
        (300, 4, [0, 80, 159, 239]),
        (60, 2, [0, 0]),
    ],
)
def test_uniform_clips_starts(n_frames, clips, starts):
    plan = make_plan(n_frames, **CLIP, clips=clips)
    assert [row[0] for row in plan.table] == starts
    if n_frames >= 61:
        assert (np.diff(plan.table) == 4).all()


@pytest.mark.golden
def test_segment_middle_of_100_frames():
    plan = make_plan(100, frames=8, policy="segment_middle")
    assert plan.table == ((6, 18, 31, 43, 56, 68, 81, 93),)


@pytest.mark.golden
@pytest.mark.parametrize(
    ("n_frames", "expected"),
    [
        (1, [0] * 8),
        (7, [0, 1, 2, 3, 3, 4, 5, 6]),
        (8, [0, 1, 2, 3, 4, 5, 6, 7]),
        (9, [0, 1, 2, 3, 5, 6, 7, 8]),
        (72, [4, 13, 22, 31, 40, 49, 58, 67]),
        (73, [4, 13, 22, 31, 41, 50, 59, 68]),
        (300, [18, 56, 93, 131, 168, 206, 243, 281]),
    ],
)
def test_segment_middle(n_frames, expected):
    assert make_plan(n_frames, frames=8, policy="segment_middle").table == (tuple(expected),)


@pytest.mark.golden
def test_segment_middle_with_two_clips_takes_two_places_of_each_segment():
    plan = make_plan(100, frames=5, clips=2, policy="segment_middle")
    assert plan.table == ((5, 25, 45, 65, 85), (15, 35, 55, 75, 95))


@pytest.mark.golden
@pytest.mark.parametrize(
    ("n_frames", "first_row", "starts"),
    [
        (1, [0] * 8, [0] * 10),
        (64, [0, 8, 16, 24, 32, 40, 48, 56], [0] * 10),
        (73, [0, 8, 16, 24, 32, 40, 48, 56], list(range(10))),
        (300, [0, 8, 16, 24, 32, 40, 48, 56], [0, 26, 52, 78, 104, 131, 157, 183, 209, 236]),
    ],
)
def test_dense(n_frames, first_row, starts):
    plan = make_plan(n_frames, frames=8, clips=10, policy="dense")
    assert list(plan.table[0]) == first_row
    assert [row[0] for row in plan.table] == starts


@pytest.mark.golden
@pytest.mark.parametrize(
    ("n_frames", "clips", "expected"),
    [
        (1, 1, [[0] * 4]),
        (7, 1, [[0, 2, 4, 6]]),
        (5, 1, [[0, 2, 4, 4]]),
        (100, 1, [[46, 48, 50, 52]]),
        (100, 3, [[0, 2, 4, 6], [46, 48, 50, 52], [92, 94, 96, 98]]),
        (13, 3, [[0, 2, 4, 6], [2, 4, 6, 8], [5, 7, 9, 11]]),  # 2.5 goes to the even 2
    ],
)
def test_vcrbench(n_frames, clips, expected):
    plan = make_plan(n_frames, frames=4, stride=2, clips=clips, policy="vcrbench")
    assert [list(row) for row in plan.table] == expected


@pytest.mark.golden
def test_vcrbench_segments_include_both_ends():
    plan = make_plan(100, frames=8, policy="vcrbench_segments")
    assert plan.table == ((0, 14, 28, 42, 57, 71, 85, 99),)
    assert make_plan(99, frames=1, policy="vcrbench_segments").table == ((49,),)


@pytest.mark.parametrize("clips", [2, 3, 4, 5, 10])
def test_rounding_agrees_with_the_float_formulas(clips):
    for n_frames in range(1, 400):
        room = max(n_frames - 61, 0)
        ours = [row[0] for row in make_plan(n_frames, **CLIP, clips=clips).table]
        theirs = np.round(np.arange(clips) * (room / (clips - 1))).astype(int) % n_frames
        assert ours == theirs.tolist()
        room = max(n_frames - 64, 0)
        ours = [row[0] for row in make_plan(n_frames, **CLIP, clips=clips, policy="vcrbench").table]
        assert ours == [round(i * room / (clips - 1)) for i in range(clips)]


@settings(deadline=None, max_examples=200)
@given(
    n_frames=st.integers(1, 500),
    frames=st.integers(1, 32),
    stride=st.integers(1, 8),
    clips=st.integers(1, 10),
    policy=st.sampled_from(["center", "uniform_clips", "segment_middle", "dense", "vcrbench"]),
    end=st.sampled_from(["loop", "clamp"]),
)
def test_every_plan_is_whole_and_inside_the_video(n_frames, frames, stride, clips, policy, end):
    clips = 1 if policy == "center" else clips
    stride = 1 if policy in ("segment_middle", "dense") else stride
    plan = make_plan(n_frames, frames=frames, stride=stride, clips=clips, policy=policy, end=end)
    table = np.array(plan.table)
    assert table.shape == (clips, frames)
    assert 0 <= table.min() <= table.max() < n_frames
    assert (np.diff(plan.distinct) > 0).all()
    assert plan.distinct.dtype == plan.gather.dtype == np.int64
    np.testing.assert_array_equal(plan.distinct[plan.gather], table)


def test_plans_with_equal_content_are_equal():
    assert make_plan(50, frames=4) == make_plan(50, frames=4)
    assert make_plan(50, frames=4) != make_plan(51, frames=4)


def test_whole_video():
    assert whole_video(3).table == ((0, 1, 2),)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"n_frames": 0}, "n_frames"),
        ({"frames": 0}, "frames"),
        ({"stride": -1}, "stride"),
        ({"clips": 0}, "clips"),
        ({"frames": 4.0}, "frames"),
        ({"frames": True}, "frames"),
        ({"policy": "middle"}, "segment_middle"),
        ({"end": "mirror"}, "clamp"),
        ({"policy": "center", "clips": 2}, "one clip"),
        ({"policy": "vcrbench_segments", "clips": 2}, "one clip"),
        ({"policy": "segment_middle", "stride": 2}, "stride"),
        ({"policy": "dense", "stride": 2}, "stride"),
        ({"policy": "dense", "frames": 65}, "64"),
    ],
)
def test_bad_arguments_are_named(change, word):
    arguments = {"n_frames": 50, "frames": 4, **change}
    n_frames = arguments.pop("n_frames")
    with pytest.raises(ValueError, match=word):
        make_plan(n_frames, **arguments)


@pytest.mark.parametrize("table", [(), ((),), ((0, 1), (0,)), ((0, 5),), ((-1, 0),)])
def test_a_plan_refuses_frames_that_do_not_exist(table):
    with pytest.raises(ValueError, match="plan"):
        SamplingPlan(table=table, policy="own", n_frames=5)


@pytest.mark.parametrize(
    ("n_frames", "step", "count"), [(1, 1, 1), (8, 1, 8), (9, 2, 5), (16, 2, 8), (17, 3, 6)]
)
def test_all_takes_every_frame_or_every_second_one_of_a_longer_video(n_frames, step, count):
    plan = make_plan(n_frames, frames=8, policy="all")
    assert plan.table == (tuple(range(0, n_frames, step)),)
    assert len(plan.distinct) == count
    with pytest.raises(ValueError, match="makes one clip"):
        make_plan(n_frames, frames=8, clips=2, policy="all")
    with pytest.raises(ValueError, match="stride must be 1"):
        make_plan(n_frames, frames=8, stride=2, policy="all")
