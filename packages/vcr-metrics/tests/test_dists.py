"""dists with a stand-in backbone: the code that loads and measures, never a number of its own."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import nn
from vcr_core.errors import ComponentUnavailable, IncompatibleComponents
from vcr_core.protocols import ClipInfo, DifferentiableMetric
from vcr_core.specs import WeightSpec
from vcr_metrics import dists as ours
from vcr_metrics.params import DistsParams

INFO = ClipInfo()
LAYOUT = (64, 64, "M", 128, 128, "M", *(256,) * 3, "M", *(512,) * 3, "M", *(512,) * 3, "M")

pytestmark = pytest.mark.skipif(
    find_spec("DISTS_pytorch") is None, reason="needs vcr-metrics[dists]"
)


@pytest.fixture(scope="module")
def features():
    """Return layers like torchvision's VGG16, with random numbers of a useful size."""
    generator = torch.Generator().manual_seed(0)
    layers: list[nn.Module] = []
    width = 3
    for item in LAYOUT:
        if item == "M":
            layers.append(nn.MaxPool2d(2))
            continue
        conv = nn.utils.skip_init(nn.Conv2d, width, item, 3, padding=1)
        scale = (2 / (9 * width)) ** 0.5
        conv.weight.data = torch.randn(item, width, 3, 3, generator=generator) * scale
        conv.bias.data = torch.randn(item, generator=generator) * 0.1
        layers += [conv, nn.ReLU()]
        width = item
    return nn.Sequential(*layers).requires_grad_(requires_grad=False)


@pytest.fixture(scope="module")
def stand_in(features, tmp_path_factory):
    file = tmp_path_factory.mktemp("hub") / "vgg16.pth"
    torch.save({f"features.{k}": v for k, v in features.state_dict().items()}, file)
    return file


@pytest.fixture
def metric(stand_in, monkeypatch):
    monkeypatch.setattr(ours, "VGG16", WeightSpec(url="https://nowhere/vgg16.pth"))
    return ours.Dists(DistsParams(backbone=str(stand_in)))


@pytest.fixture
def pair():
    generator = torch.Generator().manual_seed(1)
    clean = torch.randint(0, 256, (2, 2, 3, 40, 33), generator=generator).float() / 255
    noise = torch.randint(-20, 21, clean.shape, generator=generator) / 255
    return clean, (clean + noise).clamp(0, 1)


def test_equals_the_package_of_the_authors(metric, features, pair, monkeypatch):
    models = pytest.importorskip("torchvision.models", reason="the oracle needs torchvision")
    network = nn.Module()
    network.features = features
    monkeypatch.setattr(models, "vgg16", lambda **_: network)
    from DISTS_pytorch.DISTS_pt import DISTS

    oracle = DISTS(load_weights=False)
    alpha, beta = ours.mixing_weights()
    oracle.alpha.data, oracle.beta.data = alpha.view(1, -1, 1, 1), beta.view(1, -1, 1, 1)
    clean, test = pair
    with torch.no_grad():
        expected = oracle(clean.flatten(0, 1), test.flatten(0, 1))
    torch.testing.assert_close(
        metric.distance(clean, test), expected.view(2, 2).mean(1), rtol=1e-3, atol=1e-6
    )


def test_readings_and_gradients(metric, pair):
    clean, test = pair
    assert isinstance(metric, DifferentiableMetric)
    leaf = test.clone().requires_grad_()
    found = metric.distance(clean, leaf)
    for one, other, value in zip(clean, test, found.tolist(), strict=True):
        reading = metric.measure(one, other, INFO)["dists"]
        assert reading.value == pytest.approx(value, rel=1e-3)
        assert len(reading.per_frame) == 2
    assert metric.measure(clean[0], clean[0], INFO)["dists"].value == pytest.approx(0, abs=1e-6)
    (grad,) = torch.autograd.grad(found.sum(), leaf)
    assert torch.isfinite(grad).all()
    assert (grad.abs().amax((1, 2, 3, 4)) > 0).all()


def test_small_frames_have_no_value(metric, pair):
    clean = pair[0][..., :15]
    reading = metric.measure(clean[0], clean[0], INFO)["dists"]
    assert (reading.value, reading.reason) == (None, "frame smaller than 16 px")
    with pytest.raises(IncompatibleComponents, match="40x15"):
        metric.distance(clean, clean)


def test_equal_maps_are_alike_and_flat_ones_too():
    maps = torch.rand(2, 4, 5, 6, generator=torch.Generator().manual_seed(0))
    texture, structure = ours.similarities(maps, maps)
    torch.testing.assert_close(texture, torch.ones(2, 4))
    torch.testing.assert_close(structure, torch.ones(2, 4))
    flat = torch.full((1, 1, 3, 3), 0.5)
    assert [float(v) for v in ours.similarities(flat, flat)] == [1, 1]
    texture, structure = ours.similarities(maps, 2 * maps)
    assert float((texture - 0.8).abs().max()) < 1e-4
    assert float((structure - 0.8).abs().max()) < 1e-4


def test_pooling_keeps_the_size_of_constants():
    pooled = ours.l2_pool(torch.full((1, 2, 9, 8), 0.3))
    assert pooled.shape == (1, 2, 5, 4)
    torch.testing.assert_close(pooled[..., 1:-1, 1:], torch.full((1, 2, 3, 3), 0.3))


def test_files_that_are_absent_or_wrong_are_named(stand_in, pair, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setenv("VCR_WEIGHTS_DIR", str(tmp_path / "weights"))
    with pytest.raises(ComponentUnavailable, match=r"vgg16-397923af.*\n.*weights fetch dists "):
        ours.Dists()
    with pytest.raises(ComponentUnavailable, match="SHA-256 begins"):
        ours.Dists(DistsParams(backbone=str(stand_in))).distance(*pair)
    monkeypatch.setattr(ours, "find", lambda *_: None)
    with pytest.raises(ComponentUnavailable, match=r"vcr-metrics\[dists\]"):
        ours.mixing_weights()
    assert Path(stand_in).exists()
