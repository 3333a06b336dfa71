from __future__ import annotations

import math

import pytest
import torch
from vcr_core.protocols import ClipInfo
from vcr_metrics.mse import Mse
from vcr_metrics.params import PsnrParams
from vcr_metrics.psnr import Psnr

INFO = ClipInfo()


def unit(levels: torch.Tensor) -> torch.Tensor:
    return levels.to(torch.float32) / 255


@pytest.mark.golden
def test_patterns_are_the_published_ones(patterns):
    assert {int(p.long().sum()) for p in patterns.values()} == {24_096_768}
    assert (int(patterns["B"].min()), int(patterns["B"].max())) == (96, 237)


@pytest.mark.golden
@pytest.mark.parametrize(
    ("name", "mse", "psnr"), [("C", 16, 36.089603782), ("D", 64, 30.069003869)]
)
def test_published_values(patterns, name, mse, psnr):
    pair = unit(patterns["B"]), unit(patterns[name])
    assert Mse().measure(*pair, INFO)["mse"].value == mse
    readings = Psnr().measure(*pair, INFO)
    assert readings["psnr"].value == pytest.approx(psnr, abs=1e-9)
    assert readings["psnr_frame_mean"].value == pytest.approx(psnr, abs=1e-9)
    assert readings["psnr"].per_frame == pytest.approx([psnr] * 8, abs=1e-9)


def test_uint8_levels_do_not_wrap():
    # Subtract-and-square in uint8 is right for a difference of 4 and gives 0 for one of 16.
    reference = torch.full((2, 3, 8, 8), 100, dtype=torch.uint8)
    readings = Mse().measure(reference, reference - 16, INFO)
    assert readings["mse"].value == 256
    assert Mse().measure(reference - 16, reference, INFO)["mse"].value == 256


def test_uint8_and_float_agree_exactly():
    generator = torch.Generator().manual_seed(3)
    pair = [torch.randint(0, 256, (3, 3, 9, 7), generator=generator, dtype=torch.uint8)
            for _ in range(2)]  # fmt: skip
    floats = [unit(p) for p in pair]
    assert Mse().measure(*pair, INFO) == Mse().measure(*floats, INFO)
    assert Psnr().measure(*pair, INFO) == Psnr().measure(*floats, INFO)


def test_psnr_equals_scikit_image_on_the_whole_video():
    metrics = pytest.importorskip("skimage.metrics", reason="the oracle needs scikit-image")
    generator = torch.Generator().manual_seed(5)
    reference = torch.randint(0, 256, (4, 3, 20, 30), generator=generator, dtype=torch.uint8)
    test = (reference.int() + torch.randint(-9, 10, reference.shape, generator=generator)).clamp(
        0, 255
    )
    expected = metrics.peak_signal_noise_ratio(
        reference.numpy(), test.to(torch.uint8).numpy(), data_range=255
    )
    value = Psnr().measure(unit(reference), unit(test), INFO)["psnr"].value
    assert value == pytest.approx(expected, abs=1e-9)


def test_identical_videos_have_no_psnr_and_say_why():
    video = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    readings = Psnr().measure(video, video.clone(), INFO)
    for reading in readings.values():
        assert reading.value is None
        assert reading.reason == "identical"
    assert Mse().measure(video, video, INFO)["mse"].value == 0


def test_one_identical_frame_counts_as_the_cap():
    reference = torch.full((2, 1, 4, 4), 100 / 255)
    test = reference.clone()
    test[1] += 8 / 255
    frame = 10 * math.log10(255**2 / 64)
    readings = Psnr(PsnrParams(frame_cap_db=60)).measure(reference, test, INFO)
    assert readings["psnr"].per_frame == (None, pytest.approx(frame))
    assert readings["psnr"].value == pytest.approx(10 * math.log10(255**2 / 32))
    assert readings["psnr_frame_mean"].value == pytest.approx((60 + frame) / 2)


def test_mean_of_frames_is_at_least_psnr_of_the_mean():
    generator = torch.Generator().manual_seed(1)
    reference = torch.rand(5, 3, 8, 8, generator=generator) * 0.5 + 0.25
    noise = torch.randn(reference.shape, generator=generator)
    strength = torch.linspace(0.01, 0.1, 5).view(5, 1, 1, 1)
    readings = Psnr().measure(reference, (reference + noise * strength).clamp(0, 1), INFO)
    assert readings["psnr_frame_mean"].value > readings["psnr"].value


def test_off_grid_values_are_rounded_as_they_would_be_stored():
    reference = torch.zeros(1, 3, 4, 4)
    assert Mse().measure(reference, reference + 0.4 / 255, INFO)["mse"].value == 0
    assert Mse().measure(reference, reference + 0.6 / 255, INFO)["mse"].value == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v[:1], "shape"),
        (lambda v: v.double(), "dtype"),
        (lambda v: v * float("nan"), "finite"),
        (lambda v: v * 255, "in \\[0, 1\\]"),
        (lambda v: v - 0.1, "in \\[0, 1\\]"),
    ],
)
def test_pairs_that_do_not_match_are_refused(change, message):
    video = torch.linspace(0, 1, 2 * 3 * 4 * 4).view(2, 3, 4, 4)
    with pytest.raises(ValueError, match=message):
        Mse().measure(video, change(video), INFO)


def test_integers_other_than_uint8_and_wrong_layouts_are_refused():
    with pytest.raises(ValueError, match="uint8"):
        Mse().measure(*[torch.zeros(1, 3, 4, 4, dtype=torch.int32)] * 2, INFO)
    with pytest.raises(ValueError, match="T, C, H, W"):
        Mse().measure(*[torch.zeros(3, 4, 4)] * 2, INFO)


def test_inputs_stay_untouched_and_chunks_do_not_matter(monkeypatch):
    generator = torch.Generator().manual_seed(2)
    reference, test = (torch.rand(5, 3, 12, 13, generator=generator) for _ in range(2))
    kept = reference.clone(), test.clone()
    whole = Psnr().measure(reference, test, INFO)
    monkeypatch.setattr("vcr_metrics.levels._CHUNK_ELEMENTS", 1)
    assert Psnr().measure(reference, test, INFO) == whole
    assert torch.equal(reference, kept[0])
    assert torch.equal(test, kept[1])
