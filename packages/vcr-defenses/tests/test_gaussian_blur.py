from __future__ import annotations

import pytest
import torch
from vcr_defenses.gaussian_blur import GaussianBlur, blur, gaussian_taps, reflect_pad
from vcr_defenses.params.spatial import GaussianBlurParams


def test_constant_frames_are_kept_up_to_the_border(make_random):
    clips = torch.full((1, 1, 2, 3, 12, 17), 200 / 255)
    for params in (GaussianBlurParams(), GaussianBlurParams(mode="vcr")):
        out = GaussianBlur(params).apply(clips, make_random(1))
        torch.testing.assert_close(out, clips, rtol=0, atol=1e-6)


def test_matches_a_direct_two_dimensional_sum(make_clips, make_random):
    clips = make_clips(1, 1, 1, 3, 9, 11)
    taps = torch.exp(-(torch.arange(-2.0, 3.0) ** 2) / 2)
    taps = taps / taps.sum()
    padded = torch.nn.functional.pad(clips[0, 0], (2, 2, 2, 2), mode="reflect")
    windows = padded.unfold(2, 5, 1).unfold(3, 5, 1)
    expected = torch.einsum("tchwij,i,j->tchw", windows, taps, taps)
    out = GaussianBlur().apply(clips, make_random(1))[0, 0]
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-6)


def test_is_linear(make_clips, make_random):
    one, other = make_clips(seed=1), make_clips(seed=2)
    defense, random = GaussianBlur(GaussianBlurParams(sigma=2.0, kernel_size=9)), make_random()
    mixed = defense.apply(0.3 * one + 0.6 * other, random)
    apart = 0.3 * defense.apply(one, random) + 0.6 * defense.apply(other, random)
    torch.testing.assert_close(mixed, apart, rtol=0, atol=1e-6)


def test_keeps_the_mean_of_natural_frames(smooth_clips, make_random):
    out = GaussianBlur().apply(smooth_clips, make_random(1))
    assert abs(float(out.mean() - smooth_clips.mean())) < 1e-3


@pytest.mark.parametrize("sigma", [0.0, 1e-30, 1e-3])
def test_sigma_towards_zero_is_the_identity(sigma, make_clips, make_random):
    clips = make_clips()
    out = GaussianBlur(GaussianBlurParams(sigma=sigma)).apply(clips, make_random())
    assert torch.equal(out, clips)


def test_high_frequencies_do_not_gain_energy(make_clips, make_random):
    clips = make_clips(1, 1, 1, 3, 32, 32)
    out = GaussianBlur().apply(clips, make_random(1))
    energy = [torch.fft.fft2(c)[..., 8:24, :].abs().square().sum() for c in (clips, out)]
    assert energy[1] < energy[0] / 2


def test_random_kernels_cover_the_sizes_and_are_nearly_boxes(make_random):
    defense = GaussianBlur(GaussianBlurParams(mode="vcr"))
    impulse = torch.zeros(64, 1, 1, 3, 31, 31)
    impulse[..., 15, 15] = 1
    rows = defense.apply(impulse, make_random(64))[:, 0, 0, 0].sum(dim=1)
    widths = (rows > 1e-6).sum(dim=1)
    assert set(widths.tolist()) == {3, 5, 7, 9, 11}
    for row, width in zip(rows, widths.tolist(), strict=True):
        assert row[15 - width // 2] / row[15] >= 0.60
    assert len({round(float(r[15]), 6) for r in rows}) > 30


@pytest.mark.parametrize(("per", "same_clip", "same_frame"), [
    ("video", True, True), ("clip", False, True), ("frame", False, False),
])  # fmt: skip
def test_how_often_parameters_are_drawn(per, same_clip, same_frame, make_clips, make_random):
    frame = make_clips(1, 1, 1, 3, 24, 24)
    clips = frame.expand(1, 2, 3, 3, 24, 24)
    out = GaussianBlur(GaussianBlurParams(mode="vcr", per=per)).apply(clips, make_random(1))
    assert torch.equal(out[0, 0, 0], out[0, 1, 0]) == same_clip
    assert torch.equal(out[0, 0, 0], out[0, 0, 1]) == same_frame


def test_kernel_larger_than_the_frame(make_clips, make_random):
    clips = make_clips(1, 1, 1, 3, 1, 4)
    out = GaussianBlur(GaussianBlurParams(sigma=3, kernel_size=21)).apply(clips, make_random(1))
    assert torch.isfinite(out).all()
    assert out.std() < clips.std()


def test_reflect_pad_equals_the_library_and_repeats_beyond_the_frame():
    planes = torch.rand(1, 2, 5, 6, generator=torch.Generator().manual_seed(0))
    expected = torch.nn.functional.pad(planes, (3, 3, 0, 0), mode="reflect")
    assert torch.equal(reflect_pad(planes, 3, -1), expected)
    row = torch.arange(3.0).view(1, 1, 1, 3)
    wide = reflect_pad(row, 5, -1).flatten().tolist()
    assert wide == [1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1]


def test_taps_sum_to_one_and_respect_their_radius():
    taps = gaussian_taps(torch.tensor([0.0, 1.0, 25.0]), torch.tensor([2, 1, 5]))
    assert taps.shape == (3, 11)
    torch.testing.assert_close(taps.sum(dim=1), torch.ones(3))
    assert (taps > 0).sum(dim=1).tolist() == [1, 3, 11]
    impulse = torch.zeros(3, 1, 23, 23)
    impulse[:, :, 11, 11] = 1
    blurred = blur(impulse, taps)[:, 0, 6:17, 6:17]
    torch.testing.assert_close(blurred, taps.unsqueeze(2) * taps.unsqueeze(1))
