"""Temporal median, bilateral filter, domain transform and subsampling."""

from __future__ import annotations

import math

import pytest
import torch
from vcr_defenses.bilateral import Bilateral
from vcr_defenses.domain_transform import DomainTransform
from vcr_defenses.params.temporal import (
    BilateralParams,
    DomainTransformParams,
    TemporalMedianParams,
    TemporalSubsampleParams,
)
from vcr_defenses.temporal_median import TemporalMedian
from vcr_defenses.temporal_subsample import TemporalSubsample, neighbours

FILTERS = {
    "temporal-median": TemporalMedian(),
    "temporal-median-7": TemporalMedian(TemporalMedianParams(window=7)),
    "bilateral": Bilateral(),
    "domain-transform": DomainTransform(),
    "temporal-subsample": TemporalSubsample(),
    "temporal-subsample-repeat": TemporalSubsample(TemporalSubsampleParams(fill="repeat")),
}
every_filter = pytest.mark.parametrize("name", sorted(FILTERS))


def window_extremes(clips: torch.Tensor, radius: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the least and the greatest value of each window along time."""
    rows = clips.movedim(2, -1).flatten(0, -2)
    pooled = torch.nn.functional.max_pool1d(torch.stack([rows, -rows]), 2 * radius + 1, 1, radius)
    shape = clips.movedim(2, -1).shape
    high, low = (part.view(shape).movedim(-1, 2) for part in (pooled[0], -pooled[1]))
    return low, high


@every_filter
def test_a_still_video_stays_to_the_last_bit_also_at_its_ends(name, make_clips, make_random):
    still = make_clips(2, 2, 1, 3, 9, 7).expand(2, 2, 6, 3, 9, 7)
    assert torch.equal(FILTERS[name].apply(still, make_random()), still)


@every_filter
def test_values_lie_between_those_over_time(name, make_clips, make_random):
    clips = make_clips(1, 2, 7, 3, 9, 7)
    out = FILTERS[name].apply(clips, make_random(1))
    low, high = window_extremes(clips, 2 if name == "bilateral" else 7)
    assert (out >= low - 1e-6).all()
    assert (out <= high + 1e-6).all()


def test_median_by_hand_and_equal_to_scipy(make_clips, make_random):
    ndimage = pytest.importorskip("scipy.ndimage")
    clips = make_clips(2, 2, 6, 3, 5, 4)
    for window in (3, 5):
        out = TemporalMedian(TemporalMedianParams(window=window)).apply(clips, make_random())
        expected = ndimage.median_filter(clips.numpy(), (1, 1, window, 1, 1, 1), mode="nearest")
        assert torch.equal(out, torch.from_numpy(expected))


def test_median_removes_a_flash_keeps_ramps_and_commutes_with_reversal(make_clips, make_random):
    random = make_random(1)
    clips = torch.full((1, 1, 5, 3, 4, 4), 0.3)
    clips[:, :, 2] = 1.0
    assert torch.equal(TemporalMedian().apply(clips, random), torch.full_like(clips, 0.3))
    ramp = make_clips(1, 1, 8, 3, 4, 4).sort(dim=2).values
    assert torch.equal(TemporalMedian().apply(ramp, random), ramp)
    clips = make_clips(1, 1, 8, 3, 4, 4)
    back = TemporalMedian().apply(clips.flip(2), random).flip(2)
    assert torch.equal(back, TemporalMedian().apply(clips, random))


def test_bilateral_equals_its_formula(make_clips, make_random):
    clips = make_clips(1, 1, 5, 3, 3, 2)
    params = BilateralParams(sigma_color=0.3, sigma_time=1.5, radius=2)
    out = Bilateral(params).apply(clips, make_random(1))
    for t in range(5):
        above = below = torch.zeros_like(clips[:, :, 0])
        for k in range(max(0, t - 2), min(5, t + 3)):
            near = math.exp(-((t - k) ** 2) / (2 * 1.5**2))
            alike = torch.exp(-((clips[:, :, t] - clips[:, :, k]) ** 2) / (2 * 0.3**2))
            above, below = above + near * alike * clips[:, :, k], below + near * alike
        torch.testing.assert_close(out[:, :, t], above / below, rtol=0, atol=1e-6)


def test_bilateral_at_its_limits(make_clips, make_random):
    clips = make_clips(1, 1, 6, 3, 4, 4)
    narrow = Bilateral(BilateralParams(sigma_color=1e-4)).apply(clips, make_random(1))
    assert torch.equal(narrow, clips)
    wide = Bilateral(BilateralParams(sigma_color=1e4, sigma_time=1e4)).apply(clips, make_random(1))
    for t in range(6):
        mean = clips[:, :, max(0, t - 2) : t + 3].mean(dim=2)
        torch.testing.assert_close(wide[:, :, t], mean, rtol=0, atol=1e-5)


def test_domain_transform_equals_its_recursion(make_clips, make_random):
    """One iteration on one colour: equations 11, 14 and 21 of Gastal and Oliveira, 2011."""
    clips = make_clips(1, 1, 5, 1, 2, 2).double()
    params = DomainTransformParams(sigma_time=3.0, sigma_range=0.4, iterations=1)
    out = DomainTransform(params).apply(clips, make_random(1))
    for y, x in ((0, 0), (1, 1)):
        values = clips[0, 0, :, 0, y, x].tolist()
        a = math.exp(-math.sqrt(2) / (3.0 * math.sqrt(3) / math.sqrt(3)))
        memory = [a ** (1 + 3.0 / 0.4 * abs(values[t] - values[t - 1])) for t in range(1, 5)]
        for t in range(1, 5):
            values[t] += memory[t - 1] * (values[t - 1] - values[t])
        for t in range(3, -1, -1):
            values[t] += memory[t] * (values[t + 1] - values[t])
        assert out[0, 0, :, 0, y, x].tolist() == pytest.approx(values, abs=1e-9)


def test_domain_transform_at_its_limits_and_backwards(make_clips, smooth_clips, make_random):
    clips = make_clips(1, 1, 6, 3, 4, 4)
    clips = clips + torch.arange(6).view(1, 1, 6, 1, 1, 1) % 2 * 2  # every frame is an edge
    sharp = DomainTransform(DomainTransformParams(sigma_range=1e-5)).apply(
        clips / 3, make_random(1)
    )
    torch.testing.assert_close(sharp, clips / 3, rtol=0, atol=1e-6)
    smooth = DomainTransform(DomainTransformParams(sigma_range=1e6, sigma_time=50))
    assert smooth.apply(clips / 3, make_random(1)).std(dim=2).mean() < 0.03
    there = DomainTransform().apply(smooth_clips, make_random(1))
    back = DomainTransform().apply(smooth_clips.flip(2), make_random(1)).flip(2)
    assert float((there - back).abs().mean()) < 1e-2


def test_subsampling_keeps_frames_and_lines(make_clips, make_random):
    clips = make_clips(2, 2, 8, 3, 4, 4)
    out = TemporalSubsample().apply(clips, make_random())
    assert torch.equal(out[:, :, [0, 2, 4, 6, 7]], clips[:, :, [0, 2, 4, 6, 7]])
    torch.testing.assert_close(out[:, :, 1], (clips[:, :, 0] + clips[:, :, 2]) / 2)
    whole = TemporalSubsample(TemporalSubsampleParams(stride=1)).apply(clips, make_random())
    assert torch.equal(whole, clips)
    line = torch.linspace(0.1, 0.9, 8).view(1, 1, 8, 1, 1, 1).expand(2, 1, 8, 3, 2, 2)
    for stride in (2, 3, 5):
        params = TemporalSubsampleParams(stride=stride)
        torch.testing.assert_close(TemporalSubsample(params).apply(line, make_random()), line)


def test_subsampling_repeats_the_frame_before(make_clips, make_random):
    clips = make_clips(1, 1, 8, 3, 4, 4)
    params = TemporalSubsampleParams(stride=3, fill="repeat")
    out = TemporalSubsample(params).apply(clips, make_random(1))
    assert torch.equal(out, clips[:, :, [0, 0, 0, 3, 3, 3, 6, 6]])


def test_random_frames_stay_as_often_as_asked(make_random):
    positions = torch.arange(30.0).view(1, 1, 30, 1, 1, 1).expand(40, 1, 30, 1, 1, 1)
    params = TemporalSubsampleParams(mode="random", keep=0.4, fill="repeat")
    defense = TemporalSubsample(params)
    assert defense.stochastic
    out = defense.apply(positions / 30, make_random(40))
    stayed = (out == positions / 30).flatten(1)
    assert stayed[:, 0].all()
    assert 0.33 < float(stayed[:, 1:].double().mean()) < 0.47
    assert not torch.equal(stayed[0], stayed[1])


@pytest.mark.golden
def test_neighbours_by_hand():
    stays = torch.tensor([True, False, False, True, True])
    before, after, share = neighbours(stays)
    assert before.tolist() == [0, 0, 0, 3, 4]
    assert after.tolist() == [0, 3, 3, 3, 4]
    assert share.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 0, 0])
