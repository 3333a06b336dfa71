from __future__ import annotations

import pytest
import torch
from vcr_defenses.params.temporal import TemporalShuffleParams
from vcr_defenses.temporal_shuffle import TemporalShuffle, chunk_order


def orders(mode: str, frames: int = 16, videos: int = 50, **more: int) -> torch.Tensor:
    """Return ``[videos, frames]``: which frame each output frame shows."""
    from vcr_core.randomness import VideoRandom

    clips = torch.arange(float(frames)).view(1, 1, frames, 1, 1, 1).expand(videos, 1, -1, 3, 2, 2)
    defense = TemporalShuffle(TemporalShuffleParams(mode=mode, **more))
    return defense.apply(clips, VideoRandom(range(videos)))[:, 0, :, 0, 0, 0].long()


@pytest.mark.parametrize(("reach", "chunk"), [(2, 4), (1, 1), (3, 2), (5, 6)])
def test_runs_start_nearby_but_never_in_place_and_are_consecutive(reach, chunk):
    shown = orders("chunks", reach=reach, chunk=chunk)
    assert int((shown - torch.arange(16)).abs().max()) <= reach + chunk - 1
    for row in shown.tolist():
        t = 0
        while t < 16:
            start = row[t]
            assert start != t
            assert abs(start - t) <= reach
            length = min(chunk, 16 - start, 16 - t)
            assert row[t : t + length] == list(range(start, start + length))
            t += length


def test_chunks_repeat_and_leave_out_frames():
    shown = orders("chunks")
    assert any(len(set(row)) < 16 for row in shown.tolist())
    assert len({tuple(row) for row in shown.tolist()}) > 20


@pytest.mark.golden
def test_chunk_order_by_hand():
    """T = 6, reach 2, runs of 4: at 0 the starts are {1, 2}; at 4 they are {2, 3, 5}."""
    assert chunk_order([0.0, 0.0, 0, 0, 0, 0], 2, 4) == [1, 2, 3, 4, 2, 3]
    assert chunk_order([0.9, 0.9, 0, 0, 0, 0], 2, 4) == [2, 3, 4, 5, 5, 3]
    assert chunk_order([0.5], 2, 4) == [0]


def test_permutations_keep_all_frames_and_local_ones_stay_in_their_window():
    every = torch.arange(16).expand(50, 16)
    for shown in (orders("permute-local", window=5), orders("full")):
        assert torch.equal(shown.sort(dim=1).values, every)
        assert len({tuple(row) for row in shown.tolist()}) > 40
    local = orders("permute-local", window=5)
    assert torch.equal(local // 5, every // 5)


@pytest.mark.parametrize("mode", ["chunks", "permute-local", "full"])
def test_single_frames_and_still_videos_stay(mode, make_clips, make_random):
    defense = TemporalShuffle(TemporalShuffleParams(mode=mode))
    single = make_clips(2, 1, 1, 3, 5, 4)
    assert torch.equal(defense.apply(single, make_random()), single)
    still = single.expand(2, 1, 7, 3, 5, 4)
    assert torch.equal(defense.apply(still, make_random()), still)


def test_views_share_an_order_unless_drawn_by_clip():
    from vcr_core.randomness import VideoRandom

    clips = torch.arange(16.0).view(1, 1, 16, 1, 1, 1).expand(1, 2, -1, 3, 2, 2)
    for per, same in (("video", True), ("clip", False)):
        out = TemporalShuffle(TemporalShuffleParams(per=per)).apply(clips, VideoRandom([1]))
        assert torch.equal(out[:, 0], out[:, 1]) == same
