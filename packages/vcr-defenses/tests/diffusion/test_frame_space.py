from __future__ import annotations

import gc
from itertools import pairwise

import pytest
import torch
from vcr_core.errors import ComponentUnavailable, ConfigError
from vcr_defenses.diffusion.frame_model import FrameModel, find_frame_model
from vcr_defenses.diffusion.frame_space import FrameSpace
from vcr_defenses.diffusion.tiles import TiledDenoiser, tile_starts
from vcr_defenses.params.diffusion import FrameDenoiserParams


def frames(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


def space(folder: str, **params) -> FrameSpace:
    return FrameSpace(FrameDenoiserParams(denoiser=folder, **params), "freqpure")


@pytest.mark.parametrize("size", [(32, 32), (17, 30), (1, 5), (31, 4)])
@pytest.mark.parametrize("fit", ["resize", "native"])
def test_frames_up_to_the_models_size_are_padded_and_come_back_exactly(described, size, fit):
    x = frames(2, 3, *size)
    there = space(described(), fit=fit)
    images = there.enter(x)
    assert all(length % 4 == 0 for length in images.shape[-2:])
    assert images.min() >= -1
    assert images.max() <= 1
    torch.testing.assert_close(there.leave(images, *size), x)
    assert there.gain(*size) == 2


def test_larger_frames_are_reduced_to_the_models_square_and_enlarged_again(described):
    x = frames(1, 3, 1, 1).expand(1, 3, 40, 64)
    there = space(described())
    images = there.enter(x)
    assert images.shape == (1, 3, 32, 32)
    torch.testing.assert_close(there.leave(images, 40, 64), x)


def test_a_given_size_is_used_for_small_frames_too(described):
    there = space(described(), size=16)
    assert there.enter(frames(1, 3, 8, 12)).shape == (1, 3, 16, 16)
    assert there.enter(frames(1, 3, 16, 16)).shape == (1, 3, 16, 16)


def test_native_keeps_the_size_of_large_frames(described):
    assert space(described(), fit="native").enter(frames(1, 3, 41, 64)).shape == (1, 3, 44, 64)


@pytest.mark.parametrize("size", [(64, 64), (48, 80)])
def test_noise_is_as_strong_as_the_gain_says(described, size):
    there = space(described())
    noise = torch.randn(64, 3, *size, generator=torch.Generator().manual_seed(0))
    inner = (there.enter(noise) + 1)[..., 2:-2, 2:-2]
    assert float(inner.std()) == pytest.approx(there.gain(*size), rel=0.02)
    assert there.gain(*size) < 1.5


def test_values_outside_of_the_range_are_clamped_with_a_gradient(described):
    there = space(described())
    images = torch.full((1, 3, 8, 8), 3.0, requires_grad=True)
    out = there.leave(images, 8, 8)
    assert out.max() == 1
    assert (torch.autograd.grad(out.sum(), images)[0] == 0.5).all()


def test_values_that_are_not_finite_are_an_error_that_says_what_helps(described):
    there = space(described(), dtype="float16")
    with pytest.raises(ComponentUnavailable, match=r"not finite in float16; set defense\.dtype"):
        there.leave(torch.full((1, 3, 8, 8), torch.nan), 8, 8)


def test_frames_that_are_not_rgb_are_refused(described):
    with pytest.raises(ValueError, match="freqpure needs RGB frames, got 1"):
        space(described()).enter(frames(1, 1, 8, 8))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"size": 30}, "multiple of 4"),
        ({"fit": "tile"}, "does not say which size"),
    ],
)
def test_sizes_that_cannot_work_are_refused_before_anything_is_loaded(described, params, message):
    folder = described(unet={"sample_size": None})
    with pytest.raises(ConfigError, match=message):
        space(folder, **params)


@pytest.mark.parametrize(
    ("unet", "scheduler", "message"),
    [
        ({"_class_name": "UNet3DConditionModel"}, {}, "what is needed is a UNet2DModel of RGB"),
        ({"in_channels": 4}, {}, "of 4 channels"),
        ({"num_class_embeds": 10}, {}, "unconditional"),
        ({}, {"prediction_type": "flow"}, "prediction_type 'flow'"),
        ({}, {"beta_schedule": "sigmoid"}, "beta_schedule 'sigmoid' is not known"),
    ],
)
def test_models_of_another_kind_are_refused(described, unet, scheduler, message):
    with pytest.raises(ComponentUnavailable, match=message):
        find_frame_model(described(unet=unet, **scheduler), "freqpure")


def test_a_model_that_is_not_here_says_how_to_bring_it(tmp_path, monkeypatch):
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ComponentUnavailable, match="hf download nobody/nothing"):
        find_frame_model("nobody/nothing", "diffpure")
    with pytest.raises(ComponentUnavailable, match="there is no folder"):
        find_frame_model(str(tmp_path / "nothing"), "diffpure")


def test_weights_that_are_missing_are_named(described):
    pytest.importorskip("diffusers")
    there = space(described())
    with pytest.raises(ComponentUnavailable, match="cannot be loaded as UNet2DModel"):
        there.predict_eps(frames(1, 3, 32, 32), 3)


@pytest.mark.parametrize("length", [32, 33, 50, 64, 100, 257])
@pytest.mark.parametrize("overlap", [0.0, 0.25, 0.75])
def test_tiles_cover_everything_and_overlap_as_asked(length, overlap):
    starts = tile_starts(length, 32, overlap)
    assert starts[0] == 0
    assert starts[-1] == length - 32
    for now, after in pairwise(starts):
        assert now < after <= now + max(1, 32 * (1 - overlap)) + 0.5


def test_tiles_of_a_pointwise_denoiser_blend_to_the_whole(described, oracle):
    there = space(described(), fit="tile", chunk=3)
    seen = oracle(there_owner := type("Owner", (), {"space": there})())
    seen.predict = lambda x, t: x.sin()
    there_owner.space._model = TiledDenoiser(seen, 32, 0.25, 3)
    x = there.enter(frames(2, 3, 50, 71))
    torch.testing.assert_close(there.predict_eps(x, 7), x.sin())
    assert max(seen.batches) <= 3
    assert set(seen.steps) == {7}


def test_frames_smaller_than_a_tile_are_padded_to_one(described):
    there = space(described(), fit="tile")
    x = frames(1, 3, 9, 50)
    assert there.enter(x).shape == (1, 3, 32, 50)
    torch.testing.assert_close(there.leave(there.enter(x), 9, 50), x)
    with pytest.raises(ValueError, match="smaller than a tile"):
        TiledDenoiser(object(), 32, 0, 1).predict_eps(x, 0)


def test_a_learned_variance_is_left_out_and_predictions_are_converted(described):
    for kind, wanted in (("epsilon", 0.5), ("sample", None), ("v_prediction", None)):
        info = find_frame_model(described(name=kind, prediction_type=kind), "diffpure")
        module = torch.nn.Conv2d(3, 6, 1)
        model = FrameModel(info, lambda x, t: torch.full((len(x), 6, 4, 4), 0.5), module)
        x = frames(2, 3, 4, 4)
        out = model.predict_eps(x, 9)
        assert out.shape == x.shape
        assert not next(module.parameters()).requires_grad
        if wanted is not None:
            assert (out == wanted).all()
        else:
            assert out.std() > 0.01


def test_two_defenses_share_one_copy_of_the_weights(monkeypatch):
    pytest.importorskip("diffusers")
    first, second = FrameSpace(FrameDenoiserParams(), "a"), FrameSpace(FrameDenoiserParams(), "b")
    for there in (first, second):
        there.predict_eps(frames(1, 3, 8, 8), 0)
    assert first._model is second._model
    del first, second, there
    gc.collect()
    from vcr_defenses.diffusion import frame_model

    assert not dict(frame_model._loaded)
