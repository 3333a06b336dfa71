"""What every defense of this package has to do, whatever it computes."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import msgspec
import pytest
import torch
from vcr_defenses.gaussian_blur import GaussianBlur
from vcr_defenses.jpeg import Jpeg
from vcr_defenses.params import GaussianBlurParams, JpegParams, RotateParams
from vcr_defenses.plugin import vcr_register_defenses
from vcr_defenses.rotate import Rotate

SPECS = {spec.name: spec for spec in vcr_register_defenses()}
DEFENSES = {
    "blur": lambda: GaussianBlur(),
    "blur-vcr": lambda: GaussianBlur(GaussianBlurParams(mode="vcr")),
    "blur-vcr-clip": lambda: GaussianBlur(GaussianBlurParams(mode="vcr", per="clip")),
    "blur-vcr-frame": lambda: GaussianBlur(GaussianBlurParams(mode="vcr", per="frame")),
    "jpeg-pil": lambda: Jpeg(),
    "jpeg-pil-444": lambda: Jpeg(JpegParams(subsampling="4:4:4", quality=30)),
    "jpeg-torch": lambda: Jpeg(JpegParams(backend="torch")),
    "jpeg-torch-444": lambda: Jpeg(JpegParams(backend="torch", subsampling="4:4:4")),
    "rotate": lambda: Rotate(),
    "rotate-clip": lambda: Rotate(RotateParams(per="clip")),
    "rotate-frame": lambda: Rotate(RotateParams(per="frame", pad="reflect")),
}
every_defense = pytest.mark.parametrize("name", sorted(DEFENSES))


@every_defense
@pytest.mark.parametrize(
    "shape", [(2, 1, 3, 3, 33, 50), (1, 3, 2, 3, 24, 17), (1, 1, 1, 3, 9, 5), (3, 2, 1, 3, 16, 16)]
)
def test_shape_range_dtype_and_input_are_kept(name, shape, make_clips, make_random):
    clips = make_clips(*shape)
    kept = clips.clone()
    out = DEFENSES[name]().apply(clips, make_random(shape[0]))
    assert out.shape == clips.shape
    assert out.dtype == clips.dtype
    assert torch.isfinite(out).all()
    assert out.min() >= 0
    assert out.max() <= 1
    assert out.data_ptr() != clips.data_ptr()
    assert torch.equal(clips, kept)


@every_defense
def test_same_seed_same_output_and_randomness_as_claimed(name, make_clips, make_random):
    defense, clips = DEFENSES[name](), make_clips()
    ambient = torch.get_rng_state()
    first, again = (defense.apply(clips, make_random(seed=7)) for _ in range(2))
    other = defense.apply(clips, make_random(seed=8))
    assert torch.equal(first, again)
    assert torch.equal(first, other) != defense.stochastic
    assert torch.equal(torch.get_rng_state(), ambient)


@every_defense
def test_a_video_does_not_depend_on_its_neighbours(name, make_clips, make_random):
    defense, clips = DEFENSES[name](), make_clips(3, 2, 2, 3, 18, 25)
    together = defense.apply(clips, make_random(3))
    alone = defense.apply(clips[1:2], make_random(3).select([1]))
    torch.testing.assert_close(together[1:2], alone, rtol=0, atol=1e-6)


@every_defense
def test_white_and_black_stay_in_range_with_a_gradient(name, make_random):
    defense = DEFENSES[name]()
    for value in (0.0, 1.0):
        clips = torch.full((1, 1, 2, 3, 16, 21), value, requires_grad=True)
        out = defense.surrogate(clips, make_random(1))
        exact = defense.apply(clips, make_random(1))
        assert exact.min() >= 0
        assert exact.max() <= 1
        gradient = torch.autograd.grad((out if "jpeg" in name else exact).sum(), clips)[0]
        assert torch.isfinite(gradient).all()


@every_defense
def test_two_defenses_chain(name, make_clips, make_random):
    clips = make_clips()
    random = make_random()
    chained = Jpeg().wrap(DEFENSES[name]().wrap(lambda c: c.mean((2, 3, 4, 5)), random), random)
    assert chained(clips).shape == (2, 1)


@pytest.mark.parametrize("name", ["blur", "blur-vcr", "blur-vcr-frame", "rotate", "rotate-frame"])
def test_exact_gradients_match_finite_differences(name, make_random):
    generator = torch.Generator().manual_seed(3)
    clips = torch.rand(1, 2, 1, 1, 5, 4, generator=generator, dtype=torch.float64) * 0.8 + 0.1
    defense = DEFENSES[name]()
    assert torch.autograd.gradcheck(
        lambda c: defense.apply(c, make_random(1)), clips.requires_grad_()
    )


@pytest.mark.parametrize("name", sorted(SPECS))
def test_specs_point_at_what_they_say(name):
    spec = SPECS[name]
    module, _, attribute = spec.target.partition(":")
    defense = getattr(import_module(module), attribute)()
    assert defense.stochastic == spec.stochastic
    module, _, attribute = spec.params.partition(":")
    params = msgspec.convert({}, type=getattr(import_module(module), attribute))
    assert params == defense.params
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert({"kernel": 3}, type=type(params))


@pytest.mark.parametrize(
    ("params", "data", "message"),
    [
        (GaussianBlurParams, {"kernel_size": 4}, "odd"),
        (GaussianBlurParams, {"sigma": -1}, ">= 0"),
        (JpegParams, {"quality": 0}, ">= 1"),
        (RotateParams, {"max_degrees": 181}, "<= 180"),
    ],
)
def test_bad_parameters_are_refused(params, data, message):
    with pytest.raises(msgspec.ValidationError, match=message):
        msgspec.convert(data, type=params)


def test_describing_the_defenses_imports_nothing_heavy():
    code = (
        "import sys, vcr_defenses.plugin as p, vcr_defenses.params; p.vcr_register_defenses(); "
        "assert not {'torch', 'numpy', 'PIL', 'av'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
