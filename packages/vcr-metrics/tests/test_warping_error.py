from __future__ import annotations

import math
from importlib.util import find_spec

import pytest
import torch
from vcr_core.errors import ComponentUnavailable
from vcr_core.protocols import ClipInfo
from vcr_metrics import flow as flows
from vcr_metrics.params import WarpingErrorParams
from vcr_metrics.warping_error import WarpingError

INFO = ClipInfo()

METHODS = [
    pytest.param(
        method, marks=pytest.mark.skipif(find_spec(module) is None, reason=f"needs {module}")
    )
    for method, module in (("tvl1", "skimage"), ("dis", "cv2"))
]


def moving(frames: int, step: int = 2, side: int = 48) -> torch.Tensor:
    """Return a smooth texture ``[T, 3, side, side]``, uint8, that moves to the right."""
    y, x = torch.meshgrid(torch.arange(side), torch.arange(side + 64), indexing="ij")
    wave = torch.sin(x / 5) + torch.cos(y / 4) + torch.sin((x + 2 * y) / 9)
    levels = (128 + 30 * wave).round().to(torch.uint8)
    shown = [levels[:, 32 - step * t :][:, :side] for t in range(frames)]
    return torch.stack(shown)[:, None].expand(-1, 3, -1, -1)


def noisy(video: torch.Tensor, levels: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    signs = 2 * torch.randint(0, 2, video.shape, generator=generator) - 1
    return (video.int() + levels * signs).to(torch.uint8)


@pytest.fixture(params=METHODS)
def metric(request):
    return WarpingError(WarpingErrorParams(flow=request.param))


def test_flow_of_a_known_shift(metric):
    video = moving(2).double()
    found = metric.flow(video[0], video[1])
    inner = found[:, 8:-8, 8:-8]
    assert float(inner[0].median()) == pytest.approx(2, abs=0.05)
    assert float(inner[1].median()) == pytest.approx(0, abs=0.05)
    assert torch.equal(found, metric.flow(video[0], video[1]))
    seen = flows.followed(found, metric.flow(video[1], video[0]))
    assert float(seen[8:-8, 8:-8].double().mean()) > 0.9


def test_warping_follows_the_flow():
    video = moving(2).double()
    flow = torch.zeros(2, 48, 48, dtype=torch.float64)
    flow[0] = 2
    found, inside = flows.warped(video[1], flow)
    assert torch.allclose(found[:, :, :-2], video[0][:, :, :-2])
    assert inside[:, :-2].all()
    assert not inside[:, -2:].any()


def test_where_flow_is_not_consistent_nothing_is_compared():
    forth = torch.zeros(2, 20, 20, dtype=torch.float64)
    forth[0] = 3
    assert not flows.followed(forth, torch.zeros_like(forth)).any()
    assert flows.followed(forth, -forth)[:, :-3].all()


def test_equal_videos_differ_by_nothing(metric):
    video = moving(3)
    assert [r.value for r in metric.measure(video, video, INFO).values()] == [0, 0]


def test_noise_adds_twice_its_power_and_some_false_motion(metric):
    readings = metric.measure(moving(3), noisy(moving(3), 6), INFO)
    # Bilinear places between pixels average the noise of the second frame: below 2 * 36.
    assert 36 < readings["warp_error_delta"].value <= 73
    assert readings["tof"].value > 0.01
    assert readings["tof"].by.startswith(("scikit-image", "OpenCV"))


def test_still_perturbations_add_nothing_and_smoothing_takes_away(metric):
    video = noisy(moving(3), 8)
    still = (video.int() + 10).to(torch.uint8)
    readings = metric.measure(video, still, INFO)
    assert readings["warp_error_delta"].value == pytest.approx(0, abs=1e-6)
    smooth = metric.measure(video, moving(3), INFO)
    assert smooth["warp_error_delta"].value < 0


def test_frames_of_different_clips_are_not_compared(metric):
    one, other = moving(2), moving(2, step=-2)
    both, test = torch.cat([one, other]), torch.cat([noisy(one, 4), noisy(other, 4)])
    found = metric.measure(both, test, ClipInfo(clips=2))
    parts = [metric.measure(one, test[:2], INFO), metric.measure(other, test[2:], INFO)]
    for key, reading in found.items():
        assert reading.value == pytest.approx(sum(part[key].value for part in parts) / 2)


def test_single_and_small_frames_have_no_value(metric):
    one = metric.measure(moving(1), moving(1), INFO)
    assert {(r.value, r.reason) for r in one.values()} == {(None, "clips of one frame")}
    small = moving(2)[..., :15]
    found = metric.measure(small, small, INFO)
    assert {r.reason for r in found.values()} == {"frame smaller than 16 px"}


def test_no_common_pixel_is_said(metric, monkeypatch):
    monkeypatch.setattr(
        "vcr_metrics.warping_error.followed", lambda forth, _back: torch.zeros_like(forth[0]) > 0
    )
    readings = metric.measure(moving(2), noisy(moving(2), 2), INFO)
    assert readings["warp_error_delta"].reason == "no pixel is seen in two frames"
    assert math.isfinite(readings["tof"].value)


@pytest.mark.parametrize(("method", "module"), [("tvl1", "skimage"), ("dis", "cv2")])
def test_a_missing_library_is_named(method, module, monkeypatch):
    monkeypatch.setattr(flows, "find_spec", lambda _name: None)
    with pytest.raises(ComponentUnavailable, match=f"'{method}' needs the module {module}"):
        WarpingError(WarpingErrorParams(flow=method))
