"""What every defense of this package has to do, whatever it computes."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import msgspec
import pytest
import torch
from vcr_defenses.bilateral import Bilateral
from vcr_defenses.bit_depth import BitDepth
from vcr_defenses.crop_resize import CropResize
from vcr_defenses.domain_transform import DomainTransform
from vcr_defenses.flip import Flip
from vcr_defenses.gaussian_blur import GaussianBlur
from vcr_defenses.jpeg import Jpeg
from vcr_defenses.median import Median
from vcr_defenses.params.spatial import (
    BitDepthParams,
    CropResizeParams,
    FlipParams,
    GaussianBlurParams,
    JpegParams,
    MedianParams,
    RandomResizePadParams,
    RotateParams,
    TvmParams,
    VideoCodecParams,
)
from vcr_defenses.params.temporal import (
    BilateralParams,
    DomainTransformParams,
    TemporalMedianParams,
    TemporalShuffleParams,
    TemporalSubsampleParams,
)
from vcr_defenses.plugin import vcr_register_defenses
from vcr_defenses.random_resize_pad import RandomResizePad
from vcr_defenses.rotate import Rotate
from vcr_defenses.temporal_median import TemporalMedian
from vcr_defenses.temporal_shuffle import TemporalShuffle
from vcr_defenses.temporal_subsample import TemporalSubsample
from vcr_defenses.tvm import Tvm
from vcr_defenses.video_codec import VideoCodec

SPECS = {spec.name: spec for spec in vcr_register_defenses()}
DEFENSES = {
    "bilateral": lambda: Bilateral(),
    "bit-depth": lambda: BitDepth(),
    "blur": lambda: GaussianBlur(),
    "blur-vcr": lambda: GaussianBlur(GaussianBlurParams(mode="vcr")),
    "blur-vcr-clip": lambda: GaussianBlur(GaussianBlurParams(mode="vcr", per="clip")),
    "blur-vcr-frame": lambda: GaussianBlur(GaussianBlurParams(mode="vcr", per="frame")),
    "crop": lambda: CropResize(),
    "crop-frac-frame": lambda: CropResize(CropResizeParams(crop_frac=0.4, per="frame")),
    "domain-transform": lambda: DomainTransform(),
    "flip": lambda: Flip(),
    "flip-half-clip": lambda: Flip(FlipParams(probability=0.5, per="clip")),
    "jpeg-pil": lambda: Jpeg(),
    "jpeg-pil-444": lambda: Jpeg(JpegParams(subsampling="4:4:4", quality=30)),
    "jpeg-torch": lambda: Jpeg(JpegParams(backend="torch")),
    "jpeg-torch-444": lambda: Jpeg(JpegParams(backend="torch", subsampling="4:4:4")),
    "median": lambda: Median(),
    "resize-pad": lambda: RandomResizePad(),
    "resize-pad-frame": lambda: RandomResizePad(
        RandomResizePadParams(interpolation="nearest", flip=0.5, per="frame")
    ),
    "rotate": lambda: Rotate(),
    "rotate-clip": lambda: Rotate(RotateParams(per="clip")),
    "rotate-frame": lambda: Rotate(RotateParams(per="frame", pad="reflect")),
    "shuffle": lambda: TemporalShuffle(),
    "shuffle-local-clip": lambda: TemporalShuffle(
        TemporalShuffleParams(mode="permute-local", per="clip")
    ),
    "subsample": lambda: TemporalSubsample(),
    "subsample-random": lambda: TemporalSubsample(TemporalSubsampleParams(mode="random")),
    "temporal-median": lambda: TemporalMedian(),
    "tvm": lambda: Tvm(TvmParams(iterations=5)),
    "tvm-time-clip": lambda: Tvm(TvmParams(iterations=5, temporal_weight=0.02, per="clip")),
    "video-codec": lambda: VideoCodec(),
}
SURROGATE = ("bit-depth", "jpeg", "tvm", "video-codec")
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
    others = [defense.apply(clips, make_random(seed=seed)) for seed in range(8, 12)]
    assert torch.equal(first, again)
    assert any(not torch.equal(first, other) for other in others) == defense.stochastic
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
        gradient = torch.autograd.grad((out if name.startswith(SURROGATE) else exact).sum(), clips)[
            0
        ]
        assert torch.isfinite(gradient).all()


@every_defense
def test_two_defenses_chain(name, make_clips, make_random):
    clips = make_clips()
    random = make_random()
    chained = Jpeg().wrap(DEFENSES[name]().wrap(lambda c: c.mean((2, 3, 4, 5)), random), random)
    assert chained(clips).shape == (2, 1)


@pytest.mark.parametrize("name", [n for n in DEFENSES if not n.startswith(SURROGATE)])
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
    assert getattr(defense, "stochastic", spec.stochastic) == spec.stochastic
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
        (CropResizeParams, {"crop_px": [5, 2]}, "least, most"),
        (RandomResizePadParams, {"smallest": 331}, "below padded"),
        (FlipParams, {"ensemble": True, "probability": 0.5}, "both ways"),
        (BitDepthParams, {"bits": 0}, ">= 1"),
        (MedianParams, {"size": 2}, "two medians"),
        (TvmParams, {"drop": 1}, "<= 0.95"),
        (VideoCodecParams, {"crf": 52}, "ends at 51"),
        (VideoCodecParams, {"codec": "mpeg4", "pix_fmt": "yuv444p"}, "yuv420p"),
        (TemporalShuffleParams, {"mode": "reverse"}, "reverse"),
        (TemporalMedianParams, {"window": 4}, "two medians"),
        (BilateralParams, {"sigma_color": 0}, "> 0"),
        (DomainTransformParams, {"iterations": 0}, ">= 1"),
        (TemporalSubsampleParams, {"stride": 0}, ">= 1"),
    ],
)
def test_bad_parameters_are_refused(params, data, message):
    with pytest.raises(msgspec.ValidationError, match=message):
        msgspec.convert(data, type=params)


def test_describing_the_defenses_imports_nothing_heavy():
    code = (
        "import sys, vcr_defenses.plugin as p, vcr_defenses.params.spatial, "
        "vcr_defenses.params.temporal; p.vcr_register_defenses(); "
        "assert not {'torch', 'numpy', 'PIL', 'av'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
