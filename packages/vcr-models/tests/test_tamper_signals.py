"""Signals and scores of tampering in closed form."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from vcr_models.detectors.scores import (
    SCORES,
    THRESHOLDS,
    changed_area,
    cut,
    jumps_of,
    longest,
    masked,
    noisy,
    partly_covered,
    repeated,
    rotated,
    runs,
    shuffled,
    substituted,
)
from vcr_models.detectors.signals import FLOOR, grey_levels, signals_of, small_frames, usual

FPS = 10.0


def grey(levels):
    """Return a clip whose frames are flat, of these grey levels."""
    return torch.tensor(levels, dtype=torch.float32).view(-1, 1, 1, 1).expand(-1, 3, 32, 32) / 255


def moving(count=40, seed=0):
    """Return a clip of independent small changes around one random picture."""
    rng = np.random.default_rng(seed)
    picture = rng.uniform(60, 200, (32, 32))
    frames = picture + rng.normal(0, 2, (count, 32, 32))
    return torch.from_numpy(frames)[:, None].expand(-1, 3, -1, -1).float() / 255


class TestSignals:
    def test_grey_levels(self):
        assert grey_levels(grey([0.0, 255.0])).mean(dim=(1, 2)).tolist() == pytest.approx([0, 255])
        red = torch.tensor([1.0, 0.0, 0.0]).view(1, 3, 1, 1).expand(1, 3, 4, 4)
        assert float(grey_levels(red).mean()) == pytest.approx(0.299 * 255)

    def test_small_frames_are_averages(self):
        frames = torch.zeros(1, 64, 64)
        frames[:, ::2] = 100
        assert small_frames(frames).shape == (1, 32, 32)
        assert (small_frames(frames) == 50).all()

    def test_flat_frames(self):
        s = signals_of(grey([10.0, 20.0, 50.0]))
        assert s.lum == pytest.approx([10, 20, 50], abs=1e-4)
        assert s.sd == pytest.approx([0, 0, 0], abs=1e-4)
        assert s.step == pytest.approx([10, 30], abs=1e-4)
        assert s.jump == pytest.approx([10 / (30 + FLOOR), 30 / (10 + FLOOR)], rel=1e-5)
        assert s.lagged(2) == pytest.approx([40], abs=1e-4)
        assert s.apart(0, 2) == pytest.approx(40, abs=1e-4)
        assert s.detail == pytest.approx(np.full(3, np.log(0.1)), abs=1e-3)

    def test_usual_is_the_median_of_the_others(self):
        assert usual(np.array([1.0, 100.0, 3.0, 5.0])) == pytest.approx([5, 3, 5, 3])
        assert usual(np.arange(30.0), reach=2)[10] == pytest.approx(10)
        assert usual(np.array([7.0])) == pytest.approx([0])

    def test_a_frame_turned_round(self):
        clip = moving(6)
        clip[3:] = clip[3:].flip(2, 3)
        turn = signals_of(clip).turn
        assert turn[2] > 0.9
        assert (np.delete(turn, 2) < 0.1).all()

    def test_detail_grows_with_noise(self):
        noise = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))
        quiet, loud = (signals_of(0.5 + s * noise).detail for s in (0.01, 0.02))
        assert loud - quiet == pytest.approx(np.full(4, np.log(2)), abs=0.05)


class TestScores:
    def test_black_frames_in_seconds(self):
        clip = moving(30)
        clip[10:16] = 0
        found = masked(signals_of(clip), FPS)
        assert (found.value, found.start, found.end) == (0.6, 10, 16)

    def test_a_fade_to_black_is_none(self):
        ramp = torch.cat([torch.linspace(1, 0, 12), torch.zeros(8), torch.linspace(0, 1, 12)])
        clip = moving(32) * ramp.view(-1, 1, 1, 1)
        assert masked(signals_of(clip), FPS).value == 0

    def test_black_from_begin_to_end_has_no_edge(self):
        assert masked(signals_of(torch.zeros(10, 3, 32, 32)), FPS).value == 0

    def test_a_stretch_that_is_shown_again(self):
        clip = moving(40)
        again = torch.cat([clip[:20], clip[10:]])
        found = repeated(signals_of(again), FPS)
        assert (found.value, found.start, found.end) == (1.0, 20, 30)
        assert repeated(signals_of(clip), FPS).value == 0

    def test_a_still_video_is_shown_again_all_the_time_and_does_not_count(self):
        assert repeated(signals_of(grey([90.0] * 40)), FPS).value == 0

    def test_a_turned_stretch(self):
        clip = moving(30)
        clip[10:20] = clip[10:20].flip(2, 3)
        found = rotated(signals_of(clip), FPS)
        assert found.value > 0.9
        assert (found.start, found.end) == (10, 20)

    def test_foreign_frames(self):
        clip = moving(40)
        clip[12:25] = moving(13, seed=9)
        found = substituted(signals_of(clip), FPS)
        assert found.value > 3
        assert (found.start, found.end) == (12, 25)
        assert partly_covered(signals_of(clip), FPS).value == 0

    def test_a_covered_part(self):
        clip = moving(40)
        clip[12:25, :, 4:16, 4:16] = 0
        found = partly_covered(signals_of(clip), FPS)
        assert found.value > 2
        assert (found.start, found.end) == (12, 25)
        assert substituted(signals_of(clip), FPS).value == 0
        assert changed_area(signals_of(clip), 12) == pytest.approx(144 / 1024, abs=0.02)

    def test_noise(self):
        clip = moving(40)
        clip[12:25] += 0.2 * torch.randn(13, 3, 32, 32, generator=torch.Generator().manual_seed(1))
        found = noisy(signals_of(clip.clamp(0, 1)), FPS)
        assert found.value > THRESHOLDS["noise"] / 3
        assert (found.start, found.end) == (12, 25)

    def test_one_jump_is_a_cut_and_two_are_none(self):
        one = torch.cat([moving(20), moving(20, seed=3)])
        found = cut(signals_of(one), FPS)
        assert found.value > 3
        assert found.start == found.end == 20
        two = torch.cat([moving(20), moving(20, seed=3), moving(20)])
        assert cut(signals_of(two), FPS).value < 1

    def test_jumps_next_to_each_other_are_one(self):
        clip = torch.cat([moving(20), moving(1, seed=3), moving(20)])
        strong = [jump.frame for jump in jumps_of(signals_of(clip)) if jump.ratio > 4]
        assert strong in ([20], [21])

    def test_shuffled_frames_of_a_pan(self):
        pan = torch.stack([moving(1)[0].roll(t, 2) for t in range(40)])
        order = torch.arange(40)
        order[12:25] = 12 + torch.randperm(13, generator=torch.Generator().manual_seed(0))
        assert shuffled(signals_of(pan), FPS).value < 1.2
        assert cut(signals_of(pan), FPS).value < 0.2
        smooth = torch.stack(
            [torch.sin((torch.arange(32.0) + t) / 5).expand(3, 32, 32) for t in range(40)]
        )
        clip = 0.5 + 0.3 * smooth[order]
        assert shuffled(signals_of(clip), FPS).value > 2

    @pytest.mark.parametrize("count", [1, 2, 3, 5])
    @pytest.mark.parametrize("size", [(1, 1), (2, 9), (40, 31)])
    def test_short_and_tiny_videos_have_finite_scores(self, count, size):
        clip = torch.rand(count, 3, *size, generator=torch.Generator().manual_seed(count))
        for score in SCORES.values():
            found = score(signals_of(clip), FPS)
            assert np.isfinite(found.value)
            assert 0 <= found.start <= found.end <= count

    def test_the_thresholds_are_those_of_the_scores(self):
        assert list(SCORES) == list(THRESHOLDS)


def test_runs():
    flags = np.array([True, True, False, True, True, True])
    assert runs(flags) == [(0, 2), (3, 6)]
    assert longest(flags) == (3, 6)
    assert longest(~flags[:2]) == (0, 0)
