"""Faults of the VCR-Bench code's transforms that these ones must not have."""

from __future__ import annotations

import random as python_random
import tomllib
from importlib import resources

import msgspec
import numpy as np
import pytest
import torch
from vcr_defenses.bilateral import Bilateral
from vcr_defenses.crop_resize import CropResize
from vcr_defenses.domain_transform import DomainTransform
from vcr_defenses.flip import Flip
from vcr_defenses.gaussian_blur import GaussianBlur
from vcr_defenses.params.spatial import (
    CropResizeParams,
    GaussianBlurParams,
    RandomResizePadParams,
    RotateParams,
)
from vcr_defenses.params.temporal import BilateralParams, TemporalShuffleParams
from vcr_defenses.plugin import vcr_register_defenses
from vcr_defenses.random_resize_pad import RandomResizePad
from vcr_defenses.rotate import Rotate
from vcr_defenses.temporal_median import TemporalMedian
from vcr_defenses.temporal_shuffle import TemporalShuffle
from vcr_defenses.tvm import Tvm
from vcr_defenses.video_codec import VideoCodec


@pytest.mark.parametrize(
    "defense",
    [
        CropResize(),
        RandomResizePad(),
        TemporalShuffle(),
        Rotate(),
        GaussianBlur(GaussianBlurParams(mode="vcr")),
        Tvm(),
    ],
    ids=lambda defense: type(defense).__name__,
)
def test_randomness_comes_from_the_video_alone(defense, make_clips, make_random):
    """There: global generators, so that a resumed run has other results."""
    clips = make_clips(1, 1, 6, 3, 24, 24)
    results = []
    for ambient in (1, 2):
        python_random.seed(ambient)
        np.random.seed(ambient)
        torch.manual_seed(ambient)
        results.append(defense.apply(clips, make_random(1)))
    assert torch.equal(*results)


@pytest.mark.parametrize(
    "params",
    [
        CropResizeParams(votes=30),
        RandomResizePadParams(votes=30),
        TemporalShuffleParams(votes=30),
    ],
    ids=lambda params: type(params).__name__,
)
def test_random_transforms_can_vote(params):
    """There: ``voting_count`` is 1 everywhere."""
    assert params.votes == 30


def test_defenses_that_the_paper_names_exist():
    """There: no JPEG and no random resize with padding; names that no registry has."""
    names = {spec.name for spec in vcr_register_defenses()}
    assert {"jpeg", "random-resize-pad", "gaussian-blur", "crop-resize"} <= names


def test_the_blur_accepts_its_own_preset():
    """There: the preset passes parameters that the class refuses."""
    folder = resources.files("vcr_defenses") / "presets" / "defense"
    text = (folder / "gaussian-blur.vcr-bench-repo.toml").read_text(encoding="utf-8")
    params = msgspec.convert(tomllib.loads(text)["params"], type=GaussianBlurParams)
    assert GaussianBlur(params).stochastic


def test_the_blur_does_not_darken_the_border(make_random):
    """There: the corner of a constant 200 becomes 89."""
    clips = torch.full((1, 1, 1, 3, 20, 20), 200 / 255)
    out = GaussianBlur(GaussianBlurParams(mode="vcr")).apply(clips, make_random(1))
    torch.testing.assert_close(out, clips)


def test_the_median_has_no_dark_bias_at_the_ends(make_random):
    """There: the lower one of two frames is taken, so that noise darkens both ends."""
    generator = torch.Generator().manual_seed(0)
    clips = 0.5 + 0.1 * torch.randn(1, 1, 8, 3, 128, 128, generator=generator)
    out = TemporalMedian().apply(clips, make_random(1))
    assert abs(float(out[:, :, 0].mean() - clips.mean())) < 1e-3
    assert abs(float(out[:, :, -1].mean() - clips.mean())) < 1e-3


def test_the_bilateral_filter_keeps_the_brightness(make_clips, make_random):
    """There: the centre is left out and the divisor is a spatial mean; values reach 898."""
    clips = make_clips(1, 1, 6, 3, 16, 16)
    out = Bilateral().apply(clips, make_random(1))
    assert out.min() >= clips.min()
    assert out.max() <= clips.max()
    assert abs(float(out.mean() - clips.mean())) < 0.01
    official = BilateralParams(sigma_color=5 / 255, sigma_time=0.1, radius=1)
    torch.testing.assert_close(Bilateral(official).apply(clips, make_random(1)), clips)


def test_the_domain_transform_filters_along_time_only(make_clips, make_random):
    """There: time and pixel indices are mixed."""
    clips = make_clips(1, 1, 5, 3, 6, 6)
    changed = clips.clone()
    changed[..., 2, 3] = 1 - changed[..., 2, 3]
    one, other = (DomainTransform().apply(c, make_random(1)) for c in (clips, changed))
    different = (one != other).any(dim=2).any(dim=2)
    assert different.nonzero().tolist() == [[0, 0, 2, 3]]


def test_rotation_does_not_shear_frames_that_are_not_square(make_random):
    """There: the matrix has no aspect ratio."""
    y, x = torch.meshgrid(torch.arange(48) - 23.5, torch.arange(96) - 47.5, indexing="ij")
    disc = torch.sigmoid(2 * (15 - (y**2 + x**2).sqrt())).expand(8, 1, 1, 3, 48, 96)
    out = Rotate(RotateParams(max_degrees=45)).apply(disc, make_random(8))
    assert float((out - disc).abs().mean(dim=(1, 2, 3, 4, 5)).max()) < 0.002


@pytest.mark.parametrize("defense", [Flip(), Bilateral(), VideoCodec()], ids=lambda d: str(type(d)))
def test_results_are_never_cut_off_to_whole_numbers(defense, make_random):
    """There: results take the clean input's uint8, which cuts off and wraps around."""
    clips = torch.full((1, 1, 2, 3, 16, 16), 127.6 / 255)
    out = defense.apply(clips, make_random(1))
    assert out.dtype == torch.float32
    assert float(out.mean()) > 127.4 / 255
