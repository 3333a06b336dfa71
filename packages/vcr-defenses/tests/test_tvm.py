from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from vcr_defenses.params.spatial import TvmParams
from vcr_defenses.tv_solver import minimise_tv, total_variation
from vcr_defenses.tvm import Tvm


@pytest.fixture
def noisy() -> torch.Tensor:
    """Return ``[3, 40, 52]``: a disc on a slope, with noise."""
    y, x = torch.meshgrid(torch.arange(40.0), torch.arange(52.0), indexing="ij")
    disc = (((y - 20) ** 2 + (x - 26) ** 2) < 120).float()
    generator = torch.Generator().manual_seed(0)
    noise = 0.08 * torch.randn(3, 40, 52, generator=generator)
    return (0.3 + 0.4 * disc + x / 300 + noise).clamp(0, 1)


@pytest.mark.golden
def test_same_minimum_as_chambolle_of_scikit_image(noisy):
    restoration = pytest.importorskip("skimage.restoration")
    plane = noisy[:1]
    ours = minimise_tv(plane, torch.ones_like(plane), 0.1, 600)
    theirs = restoration.denoise_tv_chambolle(
        plane[0].double().numpy(), weight=0.1, eps=1e-9, max_num_iter=1500
    )
    torch.testing.assert_close(ours[0].double(), torch.from_numpy(theirs), rtol=0, atol=6e-3)


def test_both_ways_of_a_step_give_the_same_numbers(noisy):
    kept = (torch.rand(3, 40, 52, generator=torch.Generator().manual_seed(1)) > 0.5).float()
    for temporal in (0.0, 0.05):
        fast = minimise_tv(noisy, kept, 0.03, 30, temporal)
        recorded = minimise_tv(noisy.clone().requires_grad_(), kept, 0.03, 30, temporal)
        torch.testing.assert_close(fast, recorded.detach(), rtol=0, atol=2e-6)


def test_default_number_of_steps_is_close_to_the_minimum(noisy):
    kept = (torch.rand(3, 40, 52, generator=torch.Generator().manual_seed(2)) > 0.5).float()
    steps = TvmParams().iterations
    near, exact = (minimise_tv(noisy, kept, 0.03, n) for n in (steps, 1500))
    assert float((near - exact).square().mean().sqrt()) < 2 / 255


def test_weight_lowers_the_variation_and_zero_is_the_identity(make_clips, make_random):
    clips = make_clips(1, 1, 2, 3, 24, 30)
    variations = [float(total_variation(clips).sum())]
    for weight in (0.0, 1e-4, 0.02, 0.1, 0.5):
        out = Tvm(TvmParams(drop=0, weight=weight, iterations=150)).apply(clips, make_random(1))
        variations.append(float(total_variation(out).sum()))
        if weight <= 1e-4:
            torch.testing.assert_close(out, clips, rtol=0, atol=1e-3)
    assert variations[0] == variations[1]
    assert all(b < a for a, b in pairwise(variations[1:]))


def test_a_constant_is_a_fixed_point_whatever_is_dropped(make_random):
    clips = torch.full((1, 1, 2, 3, 20, 24), 0.6)
    for drop in (0.0, 0.5, 0.9):
        out = Tvm(TvmParams(drop=drop)).apply(clips, make_random(1))
        torch.testing.assert_close(out, clips, rtol=0, atol=1e-5)


def test_gaps_are_filled_from_around_them(smooth_clips, make_random):
    out = Tvm(TvmParams(weight=0.005)).apply(smooth_clips, make_random(1))
    assert float((out - smooth_clips).abs().mean()) < 0.02


@pytest.mark.parametrize(("per", "same_clip", "same_frame"), [
    ("video", True, True), ("clip", False, True), ("frame", False, False),
])  # fmt: skip
def test_how_often_the_mask_is_drawn(per, same_clip, same_frame, make_clips, make_random):
    clips = make_clips(1, 1, 1, 3, 16, 18).expand(1, 2, 3, 3, 16, 18)
    out = Tvm(TvmParams(per=per)).apply(clips, make_random(1))
    assert torch.equal(out[0, 0, 0], out[0, 1, 0]) == same_clip
    assert torch.equal(out[0, 0, 0], out[0, 0, 1]) == same_frame


def test_the_temporal_term_calms_flicker(make_random):
    generator = torch.Generator().manual_seed(0)
    clips = 0.5 + 0.1 * torch.randn(1, 2, 6, 3, 12, 14, generator=generator)
    flicker = [
        float(out.diff(dim=2).abs().sum())
        for weight in (0.0, 0.02, 0.1)
        for out in [Tvm(TvmParams(temporal_weight=weight)).apply(clips, make_random(1))]
    ]
    assert flicker[0] > flicker[1] > flicker[2]


def test_unrolled_stand_in_has_the_gradient_of_the_steps(make_random):
    generator = torch.Generator().manual_seed(3)
    clips = torch.rand(1, 1, 1, 1, 5, 6, generator=generator, dtype=torch.float64)
    defense = Tvm(TvmParams(surrogate="unrolled", iterations=4))
    assert torch.autograd.gradcheck(
        lambda c: defense.surrogate(c, make_random(1)), clips.requires_grad_()
    )
    assert Tvm().surrogate(clips, make_random(1)) is clips
