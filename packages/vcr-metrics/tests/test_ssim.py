from __future__ import annotations

import pytest
import torch
from vcr_core.errors import IncompatibleComponents
from vcr_core.protocols import ClipInfo, DifferentiableMetric
from vcr_metrics.ssim import Ssim, SsimUniform7

INFO = ClipInfo()
ORACLES = {
    "ssim": {"gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False},
    "ssim-uniform7": {},
}


def unit(levels: torch.Tensor) -> torch.Tensor:
    return levels.to(torch.float32) / 255


@pytest.mark.golden
@pytest.mark.parametrize(
    ("metric", "name", "value"),
    [
        (Ssim(), "C", 0.927500727),
        (Ssim(), "D", 0.768845552),
        (SsimUniform7(), "C", 0.940877655),
        (SsimUniform7(), "D", 0.809724626),
    ],
)
def test_published_values(patterns, metric, name, value):
    reading = metric.measure(unit(patterns["B"]), unit(patterns[name]), INFO)[metric.key]
    assert reading.value == pytest.approx(value, abs=1e-9)


@pytest.mark.golden
def test_published_first_frame_and_large_pair(patterns, large_patterns):
    for name, value in (("C", 0.927502517), ("D", 0.768847499)):
        reading = Ssim().measure(unit(patterns["B"]), unit(patterns[name]), INFO)["ssim"]
        assert reading.per_frame[0] == pytest.approx(value, abs=1e-9)
    large = unit(large_patterns["B"]), unit(large_patterns["C"])
    assert Ssim().measure(*large, INFO)["ssim"].value == pytest.approx(0.926675575, abs=1e-9)


@pytest.mark.parametrize("metric", [Ssim(), SsimUniform7()], ids=lambda m: m.key)
@pytest.mark.parametrize("size", [(11, 11), (33, 50)])
def test_equals_scikit_image(metric, size):
    metrics = pytest.importorskip("skimage.metrics", reason="the oracle needs scikit-image")
    generator = torch.Generator().manual_seed(7)
    reference = torch.randint(0, 256, (2, 3, *size), generator=generator, dtype=torch.uint8)
    noise = torch.randint(-30, 31, reference.shape, generator=generator)
    test = (reference.int() + noise).clamp(0, 255).to(torch.uint8)
    reading = metric.measure(unit(reference), unit(test), INFO)[metric.key]
    for one, other, value in zip(reference, test, reading.per_frame, strict=True):
        expected = metrics.structural_similarity(
            one.numpy(), other.numpy(), channel_axis=0, data_range=255, **ORACLES[metric.key]
        )
        assert value == pytest.approx(expected, abs=1e-10)
    assert reading.value == pytest.approx(sum(reading.per_frame) / 2)


@pytest.mark.parametrize("metric", [Ssim(), SsimUniform7()], ids=lambda m: m.key)
def test_constant_frames_have_a_closed_form(metric):
    a, b, c1 = 60, 80, (0.01 * 255) ** 2
    pair = [torch.full((1, 3, 16, 20), v / 255) for v in (a, b)]
    expected = (2 * a * b + c1) / (a * a + b * b + c1)
    assert metric.measure(*pair, INFO)[metric.key].value == pytest.approx(expected, abs=1e-12)


def test_uint8_and_float_agree_exactly(patterns):
    levels = patterns["B"], patterns["D"]
    assert Ssim().measure(*levels, INFO) == Ssim().measure(*map(unit, levels), INFO)


@pytest.mark.parametrize(("metric", "window"), [(Ssim(), 11), (SsimUniform7(), 7)])
def test_a_frame_below_the_window_is_missing_with_a_reason(metric, window):
    small = torch.rand(2, 3, window - 1, 40, generator=torch.Generator().manual_seed(0))
    reading = metric.measure(small, small, INFO)[metric.key]
    assert reading.value is None
    assert reading.reason == f"frame smaller than {window} px"
    exact = torch.rand(1, 3, window, window, generator=torch.Generator().manual_seed(0))
    assert metric.measure(exact, exact, INFO)[metric.key].value == pytest.approx(1, abs=1e-12)


def test_identity_symmetry_order_and_noise():
    generator = torch.Generator().manual_seed(11)
    reference = torch.rand(4, 3, 24, 17, generator=generator)
    noise = torch.randn(reference.shape, generator=generator)
    values = []
    for strength in (0, 2, 4, 8, 16):
        test = (reference + noise * strength / 255).clamp(0, 1)
        values.append(Ssim().measure(reference, test, INFO)["ssim"].value)
        swapped = Ssim().measure(test, reference, INFO)["ssim"].value
        assert swapped == pytest.approx(values[-1], abs=1e-12)
        order = torch.tensor([2, 0, 3, 1])
        permuted = Ssim().measure(reference[order], test[order], INFO)["ssim"].value
        assert permuted == pytest.approx(values[-1], abs=1e-12)
    assert values[0] == pytest.approx(1, abs=1e-12)
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.99


def test_chunks_do_not_matter(patterns, monkeypatch):
    pair = unit(patterns["B"]), unit(patterns["C"])
    whole = Ssim().measure(*pair, INFO)["ssim"].per_frame
    monkeypatch.setattr("vcr_metrics.levels._CHUNK_ELEMENTS", 1)
    assert Ssim().measure(*pair, INFO)["ssim"].per_frame == pytest.approx(whole, abs=1e-14)


@pytest.mark.gpu
def test_gpu_equals_cpu(patterns):
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    pair = unit(patterns["B"]), unit(patterns["D"])
    on_gpu = Ssim().measure(*[p.cuda() for p in pair], INFO)["ssim"].value
    assert on_gpu == pytest.approx(Ssim().measure(*pair, INFO)["ssim"].value, abs=1e-12)


@pytest.mark.parametrize("metric", [Ssim(), SsimUniform7()], ids=lambda m: m.key)
def test_distance_agrees_with_the_metric_on_stored_videos(metric, patterns):
    assert isinstance(metric, DifferentiableMetric)
    clean = torch.stack([unit(patterns["B"]), unit(patterns["C"])])
    test = torch.stack([unit(patterns["C"]), unit(patterns["D"])])
    found = metric.distance(clean, test)
    assert found.shape == (2,)
    for one, other, value in zip(clean, test, found.tolist(), strict=True):
        measured = metric.measure(one, other, INFO)[metric.key].value
        assert value == pytest.approx(1 - measured, abs=1e-5)
    assert metric.distance(clean, clean).tolist() == pytest.approx([0, 0], abs=1e-6)


def test_distance_has_the_gradient_of_its_formula():
    generator = torch.Generator().manual_seed(0)
    clean = torch.rand(2, 2, 3, 12, 13, generator=generator, dtype=torch.float64)
    test = torch.rand(2, 2, 3, 12, 13, generator=generator, dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda x: Ssim().distance(clean, x), test.requires_grad_(), atol=1e-6, fast_mode=True
    )
    same = clean.clone().requires_grad_()
    (grad,) = torch.autograd.grad(Ssim().distance(clean, same).sum(), same)
    assert float(grad.abs().max()) < 1e-9


def test_distance_refuses_frames_below_the_window():
    small = torch.rand(1, 2, 3, 10, 40)
    with pytest.raises(IncompatibleComponents, match=r"11x11.*10x40"):
        Ssim().distance(small, small)
