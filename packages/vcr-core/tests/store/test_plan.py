from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vcr_core.errors import UsageError
from vcr_core.plan import pending_batches, plan_batches, shard_batches
from vcr_core.records import check_complete


def test_batches_are_consecutive():
    assert plan_batches(list("abcdefg"), 3) == [["a", "b", "c"], ["d", "e", "f"], ["g"]]
    assert plan_batches([], 3) == []


def test_batches_refuse_size_and_repeats():
    with pytest.raises(UsageError, match="batch_videos is 0"):
        plan_batches(["a"], 0)
    with pytest.raises(UsageError, match="twice: b"):
        plan_batches(["a", "b", "b"], 2)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_shards_cover_seven_videos_once(count):
    batches = plan_batches([f"v{i}" for i in range(7)], 1)
    done = [
        {"video": video, "attempt": 1}
        for index in range(count)
        for number in shard_batches(len(batches), index, count)
        for video in batches[number]
    ]
    assert len(done) == 7
    assert check_complete(done, batches).ok


def test_seven_videos_on_three_shards_in_pairs():
    assert [shard_batches(4, k, 3) for k in range(3)] == [[0, 3], [1], [2]]


def test_more_shards_than_batches_leaves_some_empty():
    assert shard_batches(2, 5, 7) == []


@pytest.mark.parametrize(("index", "count"), [(3, 3), (-1, 3), (0, 0)])
def test_shard_refuses_what_does_not_exist(index, count):
    with pytest.raises(UsageError, match="does not exist"):
        shard_batches(4, index, count)


@given(st.integers(0, 60), st.integers(1, 9), st.integers(1, 12))
def test_union_of_shards_is_every_batch_once(n_videos, size, count):
    batches = plan_batches([f"v{i}" for i in range(n_videos)], size)
    taken = [number for k in range(count) for number in shard_batches(len(batches), k, count)]
    assert sorted(taken) == list(range(len(batches)))


def test_pending_redoes_a_batch_whole():
    batches = [["a", "b"], ["c", "d"], ["e"]]
    records = [
        {"video": "a", "status": "ok"},
        {"video": "b", "status": "error"},
        {"video": "c", "status": "ineligible"},
    ]
    assert pending_batches(batches, records) == [1, 2]
    assert pending_batches(batches, records, retry_below=2) == [0, 1, 2]
    assert pending_batches(batches, []) == [0, 1, 2]
