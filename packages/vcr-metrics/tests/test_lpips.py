"""lpips with stand-in backbones: the code that loads and measures, never a number of its own."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch.nn.functional as F
from vcr_core.errors import ComponentUnavailable, IncompatibleComponents
from vcr_core.protocols import ClipInfo, DifferentiableMetric
from vcr_core.specs import WeightSpec
from vcr_metrics import lpips as ours
from vcr_metrics.params import LpipsParams, LpipsVcrbenchParams
from vcr_metrics.weights import BACKBONES

INFO = ClipInfo()


@pytest.fixture(scope="module")
def official():
    """Return a maker of the package's network with a random backbone."""
    library = pytest.importorskip("lpips", reason="needs vcr-metrics[lpips]")

    def make(net):
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # it asks torchvision in an old way
            torch.manual_seed(0)
            return library.LPIPS(net=net, pnet_rand=True, verbose=False)

    return make


@pytest.fixture(scope="module")
def stand_in(official, tmp_path_factory):
    """Return a file like torchvision's AlexNet, of random numbers."""
    backbone = official("alex").net
    state = {f"features.{k.partition('.')[2]}": v for k, v in backbone.state_dict().items()}
    file = tmp_path_factory.mktemp("hub") / "alexnet.pth"
    torch.save({**state, "classifier.6.bias": torch.zeros(1000)}, file)
    return file


@pytest.fixture
def metric(stand_in, monkeypatch):
    monkeypatch.setitem(BACKBONES, "alex", WeightSpec(url="https://nowhere/alexnet.pth"))
    return ours.Lpips(LpipsParams(backbone=str(stand_in)))


@pytest.fixture
def pair():
    generator = torch.Generator().manual_seed(1)
    clean = torch.randint(0, 256, (2, 3, 3, 40, 48), generator=generator).float() / 255
    noise = torch.randint(-20, 21, clean.shape, generator=generator) / 255
    return clean, (clean + noise).clamp(0, 1)


def test_equals_the_package_frame_by_frame(metric, official, pair):
    oracle = official("alex")  # its seed is that of the file
    clean, test = pair
    with torch.no_grad():
        expected = oracle(2 * clean[0] - 1, 2 * test[0] - 1).flatten()
    reading = metric.measure(clean[0], test[0], INFO)["lpips"]
    assert reading.per_frame == pytest.approx(expected.tolist(), rel=1e-4)
    assert reading.value == pytest.approx(float(expected.mean()), rel=1e-4)
    assert metric.measure(clean[0], clean[0], INFO)["lpips"].value == 0


def test_distance_is_the_reading_and_differentiable(metric, pair):
    clean, test = pair
    assert isinstance(metric, DifferentiableMetric)
    leaf = test.clone().requires_grad_()
    found = metric.distance(clean, leaf)
    for one, other, value in zip(clean, test, found.tolist(), strict=True):
        assert metric.measure(one, other, INFO)["lpips"].value == pytest.approx(value, rel=1e-4)
    (grad,) = torch.autograd.grad(found.sum(), leaf)
    assert torch.isfinite(grad).all()
    assert (grad.abs().amax((1, 2, 3, 4)) > 0).all()
    nearer = leaf.detach() - 1e-3 * grad / grad.abs().amax()
    assert (metric.distance(clean, nearer) < found).all()


def test_loading_leaves_the_ambient_random_state(metric, pair):
    before = torch.get_rng_state()
    metric.measure(pair[0][0], pair[1][0], INFO)
    assert torch.equal(torch.get_rng_state(), before)


def test_small_frames_have_no_value(metric, pair):
    clean = pair[0][..., :31, :]
    reading = metric.measure(clean[0], clean[0], INFO)["lpips"]
    assert (reading.value, reading.reason) == (None, "frame smaller than 32 px")
    with pytest.raises(IncompatibleComponents, match="31x48"):
        metric.distance(clean, clean)


def test_an_absent_backbone_is_named_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setenv("VCR_WEIGHTS_DIR", str(tmp_path / "weights"))
    with pytest.raises(ComponentUnavailable, match=r"alexnet-owt.*\n.*weights fetch lpips\.alex "):
        ours.Lpips()
    with pytest.raises(ComponentUnavailable, match=r"vgg16-397923af.*\n.*fetch lpips-vcrbench "):
        ours.LpipsVcrbench()
    with pytest.raises(ComponentUnavailable, match=r"there is no file .*absent\.pth"):
        ours.Lpips(LpipsParams(net="vgg", backbone=str(tmp_path / "absent.pth")))


def test_a_backbone_is_found_where_weights_are_kept(stand_in, tmp_path, monkeypatch):
    monkeypatch.setitem(BACKBONES, "alex", WeightSpec(url="https://nowhere/alexnet.pth"))
    monkeypatch.setenv("VCR_WEIGHTS_DIR", str(stand_in.parent))
    assert ours.Lpips().file == stand_in
    nearer = tmp_path / stand_in.name
    nearer.write_bytes(stand_in.read_bytes())
    assert ours.Lpips(None, (tmp_path,)).file == nearer


def test_another_file_is_refused_whatever_it_holds(stand_in, pair):
    random = ours.Lpips(LpipsParams(backbone=str(stand_in)))
    with pytest.raises(ComponentUnavailable, match="SHA-256 begins"):
        random.measure(pair[0][0], pair[1][0], INFO)
    with pytest.raises(ComponentUnavailable, match="SHA-256 begins"):
        random.distance(*pair)


def test_a_file_without_a_layer_is_refused(stand_in, tmp_path, monkeypatch):
    monkeypatch.setitem(BACKBONES, "alex", WeightSpec(url="https://nowhere/alexnet.pth"))
    state = torch.load(stand_in, weights_only=True)
    del state["features.8.bias"]
    torch.save(state, tmp_path / "short.pth")
    with pytest.raises(ComponentUnavailable, match=r"features\.8\.bias"):
        ours.load_network("alex", tmp_path / "short.pth")


def test_the_vgg_backbone_has_the_layers_of_torchvision(official):
    keys = official("vgg").net.state_dict()
    numbers = sorted({int(key.split(".")[1]) for key in keys})
    assert numbers == [0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28]


@pytest.fixture(scope="module")
def vgg_stand_in(official, tmp_path_factory):
    backbone = official("vgg").net
    state = {f"features.{k.partition('.')[2]}": v for k, v in backbone.state_dict().items()}
    file = tmp_path_factory.mktemp("hub") / "vgg16.pth"
    torch.save(state, file)
    return file


def test_the_squeeze_backbone_equals_the_package(official, pair, tmp_path, monkeypatch):
    oracle = official("squeeze")
    state = {f"features.{k.partition('.')[2]}": v for k, v in oracle.net.state_dict().items()}
    torch.save(state, tmp_path / "squeezenet.pth")
    monkeypatch.setitem(BACKBONES, "squeeze", WeightSpec(url="https://nowhere/squeezenet.pth"))
    metric = ours.Lpips(LpipsParams(net="squeeze", backbone=str(tmp_path / "squeezenet.pth")))
    clean, test = pair[0][0], pair[1][0]
    with torch.no_grad():
        expected = oracle(2 * clean - 1, 2 * test - 1).flatten()
    found = metric.measure(clean, test, INFO)["lpips"]
    assert found.per_frame == pytest.approx(expected.tolist(), rel=1e-4)
    assert found.by.endswith(", squeeze, squeezenet.pth")


def test_the_form_of_vcr_bench_looks_at_shrunk_frames(vgg_stand_in, monkeypatch):
    monkeypatch.setitem(BACKBONES, "vgg", WeightSpec(url="https://nowhere/vgg16.pth"))
    given = str(vgg_stand_in)
    shrunk = ours.LpipsVcrbench(LpipsVcrbenchParams(backbone=given))
    plain = ours.Lpips(LpipsParams(net="vgg", backbone=given))
    generator = torch.Generator().manual_seed(2)
    # 448 is twice 224: bilinear without smoothing is then the mean of 2x2 pixels.
    clean = torch.randint(0, 256, (1, 3, 100, 448), generator=generator).float() / 255
    test = (clean + torch.randint(-9, 10, clean.shape, generator=generator) / 255).clamp(0, 1)
    halves = [F.avg_pool2d(video, 2) for video in (clean, test)]
    with torch.no_grad():
        expected = float(plain.frames(*halves))
    assert shrunk.measure(clean, test, INFO)["lpips-vcrbench"].value == pytest.approx(
        expected, rel=1e-4
    )
    assert shrunk.seen(torch.rand(1, 3, 225, 1000)).shape[-2:] == (50, 224)
    small = torch.rand(1, 3, 60, 64)
    assert shrunk.seen(small) is small
    flat = torch.rand(1, 3, 64, 1000)
    reading = shrunk.measure(flat, flat, INFO)["lpips-vcrbench"]
    assert (reading.value, reading.reason) == (None, "frame smaller than 16 px")
