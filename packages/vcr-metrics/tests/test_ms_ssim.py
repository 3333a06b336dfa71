from __future__ import annotations

import pytest
import torch
from vcr_core.errors import IncompatibleComponents
from vcr_core.protocols import ClipInfo, DifferentiableMetric
from vcr_metrics.ms_ssim import MsSsim, frame_ms_ssim

INFO = ClipInfo()


def unit(levels: torch.Tensor) -> torch.Tensor:
    return levels.to(torch.float32) / 255


def pictures(height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two frames with structure at several scales, and a noisy version, as levels."""
    generator = torch.Generator().manual_seed(height + width)
    coarse = torch.rand(2, 3, height // 8, width // 8, generator=generator, dtype=torch.float64)
    smooth = torch.nn.functional.interpolate(coarse, (height, width), mode="bilinear")
    noise = torch.randint(-25, 26, smooth.shape, generator=generator)
    clean = (255 * smooth).round()
    return clean, (clean + noise).clamp(0, 255)


@pytest.mark.golden
def test_published_value(large_patterns):
    reading = MsSsim().measure(unit(large_patterns["B"]), unit(large_patterns["C"]), INFO)
    assert reading["ms-ssim"].value == pytest.approx(0.982499385, abs=1e-9)
    assert len(reading["ms-ssim"].per_frame) == 2


@pytest.mark.parametrize("size", [(161, 161), (176, 208)])
def test_equals_piq(size):
    piq = pytest.importorskip("piq", reason="the oracle is piq")
    clean, test = pictures(*size)
    expected = piq.multi_scale_ssim(clean, test, data_range=255.0, reduction="none")
    assert frame_ms_ssim(clean, test).tolist() == pytest.approx(expected.tolist(), abs=1e-12)


def test_equals_pytorch_msssim_nearly(large_patterns):
    oracle = pytest.importorskip("pytorch_msssim", reason="the oracle is pytorch-msssim")
    clean, test = (large_patterns[k].double() for k in "BC")
    # Its window has the digits of float32.
    expected = float(oracle.ms_ssim(clean, test, data_range=255))
    assert float(frame_ms_ssim(clean, test).mean()) == pytest.approx(expected, abs=2e-6)


def test_it_is_one_for_equal_frames_and_symmetric():
    clean, test = pictures(161, 170)
    assert frame_ms_ssim(clean, clean).tolist() == pytest.approx([1, 1], abs=1e-12)
    back = frame_ms_ssim(test, clean)
    assert frame_ms_ssim(clean, test).tolist() == pytest.approx(back.tolist(), abs=1e-12)


def test_small_frames_have_no_value():
    small = torch.rand(1, 3, 160, 300)
    reading = MsSsim().measure(small, small, INFO)["ms-ssim"]
    assert (reading.value, reading.reason) == (None, "frame smaller than 161 px")
    with pytest.raises(IncompatibleComponents, match=r"161x161.*160x300"):
        MsSsim().distance(small[None], small[None])


def test_opposite_structure_counts_as_zero_and_has_a_finite_gradient():
    clean = pictures(161, 161)[0][:1] / 255
    inverted = (1 - clean).requires_grad_()
    found = 1 - MsSsim().distance(clean[None], inverted[None])
    assert found.tolist() == [0]
    (grad,) = torch.autograd.grad(found.sum(), inverted)
    assert torch.isfinite(grad).all()
    reading = MsSsim().measure(clean.float(), (1 - clean).float(), INFO)["ms-ssim"]
    assert reading.value == 0


def test_distance_agrees_with_the_metric_and_falls_along_its_gradient(large_patterns):
    metric = MsSsim()
    assert isinstance(metric, DifferentiableMetric)
    clean, test = unit(large_patterns["B"])[None], unit(large_patterns["C"])[None]
    leaf = test.clone().requires_grad_()
    found = metric.distance(clean, leaf)
    assert found.tolist() == pytest.approx([1 - 0.982499385], abs=1e-5)
    (grad,) = torch.autograd.grad(found.sum(), leaf)
    nearer = metric.distance(clean, test - 0.002 * grad / grad.abs().max())
    assert nearer.tolist() < found.tolist()


def test_chunks_and_number_types_do_not_matter(monkeypatch):
    clean, test = (p.to(torch.uint8) for p in pictures(161, 165))
    whole = MsSsim().measure(clean, test, INFO)
    assert MsSsim().measure(unit(clean), unit(test), INFO) == whole
    monkeypatch.setattr("vcr_metrics.levels._CHUNK_ELEMENTS", 1)
    assert MsSsim().measure(clean, test, INFO)["ms-ssim"].per_frame == pytest.approx(
        whole["ms-ssim"].per_frame, abs=1e-14
    )
