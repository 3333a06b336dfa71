"""Common corruptions: what each keeps, how it grows, and that it is the same everywhere."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import torch
from vcr_attacks.corruptions.colour import to_hsv, to_rgb
from vcr_attacks.corruptions.kernels import disc, gaussian, line_taps, moved
from vcr_attacks.corruptions.weather import plasma
from vcr_attacks.specs.corruptions import SPECS
from vcr_core.components import load_attr, params_type
from vcr_core.randomness import VideoRandom

BY_NAME = {spec.name: spec for spec in SPECS}
every_corruption = pytest.mark.parametrize("name", sorted(BY_NAME))
COLOUR = ("brightness", "contrast", "saturate", "hue")
GROWING = (
    "gaussian-noise", "shot-noise", "impulse-noise", "speckle-noise", "gaussian-blur",
    "defocus-blur", "zoom-blur", "jpeg-compression", "pixelate", "brightness", "contrast",
    "translate", "hue", "motion-blur-spatial", "rain", "jitter-translate",
)  # fmt: skip


def corrupt(name: str, video: torch.Tensor, severity: int, seed: int = 1, **params: Any) -> Any:
    spec = BY_NAME[name]
    made = msgspec.convert({"severity": severity, **params}, params_type(spec))
    component = load_attr(spec.target, spec)(made)
    context: Any = SimpleNamespace(random=VideoRandom([seed + i for i in range(len(video))]))
    return component.attack(None, video, None, context)


@pytest.fixture(scope="module")
def picture() -> torch.Tensor:
    """Two videos of 3 frames, 96 x 112: coloured clouds that drift."""
    generator = torch.Generator().manual_seed(0)
    clouds = torch.stack([plasma(128, 1.7, generator) for _ in range(6)]).view(2, 3, 128, 128)
    frames = [clouds.roll((3 * t, -2 * t), dims=(-2, -1))[..., :96, :112] for t in range(3)]
    return (torch.stack(frames, dim=1).mul(0.8).add(0.1) * 255).round() / 255


@every_corruption
class TestEveryCorruption:
    def test_severity_0_is_the_identity(self, name, picture):
        assert torch.equal(corrupt(name, picture, 0), picture)

    def test_shape_range_and_determinism(self, name, picture):
        odd = picture[..., :45, :61]
        kept = odd.clone()
        for severity in (1, 5):
            out = corrupt(name, odd, severity)
            assert out.shape == odd.shape
            assert torch.isfinite(out).all()
            assert 0 <= out.min() <= out.max() <= 1
            assert torch.equal(out, corrupt(name, odd, severity))
            assert not torch.equal(out, odd)
        assert torch.equal(odd, kept)

    def test_seeds_matter_where_the_spec_says_so(self, name, picture):
        small = picture[..., :48, :48]
        outs = [corrupt(name, small, 4, seed=100 * s) for s in range(6)]
        differs = any(not torch.equal(outs[0], other) for other in outs[1:])
        assert differs == BY_NAME[name].stochastic

    def test_a_video_alone_is_the_same_as_in_a_batch(self, name, picture):
        together = corrupt(name, picture, 3)
        alone = corrupt(name, picture[1:], 3, seed=2)
        assert torch.equal(together[1:], alone)


@pytest.mark.parametrize("name", GROWING)
def test_damage_grows_with_severity(name, picture):
    damage = [float((corrupt(name, picture, s) - picture).square().mean().sqrt()) for s in range(6)]
    assert damage[0] == 0
    assert all(a < b for a, b in itertools.pairwise(damage)), damage


@pytest.mark.parametrize(("name", "frames"), [("glass-blur", 1), ("jitter-rotate", 40)])
def test_damage_grows_at_the_size_of_the_tables_and_on_average(name, frames):
    clouds = torch.stack([plasma(256, 1.7, torch.Generator().manual_seed(s)) for s in range(3)])
    video = clouds[:, :224, :224].expand(1, frames, 3, 224, 224)
    damage = [float((corrupt(name, video, s) - video).square().mean()) for s in range(1, 6)]
    assert all(a < b for a, b in itertools.pairwise(damage)), damage


@pytest.mark.parametrize("name", COLOUR)
def test_colour_changes_every_frame_by_itself(name, picture):
    order = [2, 0, 1]
    assert torch.equal(corrupt(name, picture[:, order], 2), corrupt(name, picture, 2)[:, order])


def test_means_are_kept(picture):
    grey = torch.full((1, 4, 3, 64, 64), 0.5)
    assert corrupt("gaussian-noise", grey, 1).mean() == pytest.approx(0.5, abs=1e-2)
    for name in ("gaussian-blur", "zoom-blur"):
        out = corrupt(name, picture, 1)
        assert out.mean() == pytest.approx(float(picture.mean()), abs=1e-2)
    assert corrupt("pixelate", picture[..., :80, :80], 2).mean() == pytest.approx(
        float(picture[..., :80, :80].mean()), abs=1e-3
    )
    means = corrupt("contrast", picture, 1).mean(dim=(-2, -1))
    assert torch.allclose(means, picture.mean(dim=(-2, -1)), atol=1e-5)


def test_saturation_and_hue_leave_grey_alone(picture):
    grey = picture[:, :, :1].expand_as(picture)
    for severity in (1, 2, 3):
        assert torch.allclose(corrupt("saturate", grey, severity), grey, atol=1e-6)
    assert torch.allclose(corrupt("hue", grey, 5), grey, atol=1e-6)
    spread = lambda v: (v.amax(dim=2) - v.amin(dim=2)).mean()  # noqa: E731
    assert spread(corrupt("saturate", picture, 1)) < spread(picture)


def test_hsv_there_and_back_and_a_full_turn(picture):
    hue, saturation, value = to_hsv(picture)
    assert torch.allclose(to_rgb(hue, saturation, value), picture, atol=1e-6)
    assert torch.allclose(to_rgb(hue + 1, saturation, value), picture, atol=1e-5)
    import colorsys

    for row in picture[0, 0, :, ::37, ::29].flatten(1).T[:12]:
        r, g, b = row.tolist()
        found = [float(part) for part in to_hsv(row.view(3, 1, 1))]
        assert found == pytest.approx(colorsys.rgb_to_hsv(r, g, b), abs=1e-6)


def test_impulses_are_half_salt_half_pepper():
    grey = torch.full((1, 4, 3, 64, 64), 0.5)
    out = corrupt("impulse-noise", grey, 5)
    assert (out == 0).double().mean() == pytest.approx(0.135, abs=0.01)
    assert (out == 1).double().mean() == pytest.approx(0.135, abs=0.01)


def test_photons_have_the_variance_of_their_number():
    grey = torch.full((1, 4, 3, 64, 64), 0.5)
    out = corrupt("shot-noise", grey, 1)
    assert out.var() == pytest.approx(0.5 / 60, rel=0.05)
    assert corrupt("shot-noise", grey, 1, table="kinetics400-p").var() < out.var()


def test_the_translation_is_a_translation(picture):
    out = corrupt("translate", picture[:1], 5)
    pixels = round(16 * 96 / 224)
    inner = slice(2 * pixels, -2 * pixels)
    matches = [
        torch.equal(out[..., inner, inner], moved(picture[:1], y, x)[..., inner, inner])
        for y in (-pixels, pixels)
        for x in (-pixels, pixels)
    ]
    assert sum(matches) == 1


def test_fog_and_frost_stay_while_snow_falls():
    still = torch.full((1, 3, 3, 64, 64), 0.4)
    for name in ("fog", "frost"):
        out = corrupt(name, still, 3)
        assert torch.equal(out[:, 0], out[:, 1])
    snow = corrupt("snow", still, 3)
    assert not torch.equal(snow[:, 0], snow[:, 1])


def test_contrast_of_another_table_is_milder(picture):
    mild = [corrupt("contrast", picture, s, table="mini-ssv2-c") for s in (2, 5)]
    assert torch.equal(mild[0], corrupt("contrast", picture, 1))
    assert torch.equal(mild[1], corrupt("contrast", picture, 4))


class TestCamera:
    def test_a_quarter_turn_is_exact_and_anticlockwise(self, picture):
        square = picture[..., :80, :80]
        out = corrupt("static-rotate", square, 5)
        assert torch.allclose(out, square.rot90(1, dims=(-2, -1)), atol=1e-4)

    def test_a_turn_leaves_the_centre_and_blackens_the_corners(self):
        white = torch.ones(1, 2, 3, 61, 61)
        out = corrupt("static-rotate", white, 4)
        assert (out[..., 30, 30] == 1).all()
        assert (out[..., 0, 0] == 0).all()
        # An octagon of a square and the square turned by 45 degrees.
        assert out.mean() == pytest.approx(2 * (2**0.5 - 1), abs=0.02)

    def test_jitter_differs_from_frame_to_frame(self, picture):
        still = picture[:1, :1].expand(1, 8, 3, 96, 112)
        for name in ("jitter-rotate", "jitter-translate"):
            frames = corrupt(name, still, 3)[0]
            assert len({f.numpy().tobytes() for f in frames}) > 4

    def test_jitter_shifts_up_and_left_by_less_than_its_limit(self, picture):
        still = picture[:1, :1].expand(1, 20, 3, 96, 112)
        for frame in corrupt("jitter-translate", still, 2)[0]:
            limit = range(round(16 * 96 / 224))
            shifts = [(y, x) for y in limit for x in limit
                      if torch.equal(frame, moved(still[0, 0], -y, -x))]  # fmt: skip
            assert len(shifts) == 1


class TestRain:
    def test_it_covers_the_same_part_of_small_and_large_frames(self):
        parts = []
        for side in (64, 112, 224):
            dark = torch.zeros(1, 8, 3, side, side)
            wet = corrupt("rain", dark, 3)
            parts.append(float((wet > wet.amin(dim=(-2, -1), keepdim=True)).double().mean()))
        # A streak of 60 pixels for every 770; some overlap.
        assert parts[2] == pytest.approx(60 / 770, rel=0.15)
        assert parts[0] == pytest.approx(parts[2], rel=0.15)
        assert parts[1] == pytest.approx(parts[2], rel=0.15)

    def test_streaks_brighten_and_move(self, picture):
        dark = torch.full((1, 3, 3, 64, 64), 0.2)
        wet = corrupt("rain", dark, 4)
        assert wet.max() > 0.25
        assert not torch.equal(wet[:, 0], wet[:, 1])


class TestKernels:
    def test_gaussian_keeps_constants_and_is_separable_and_mirrored(self):
        assert torch.allclose(gaussian(torch.full((2, 9, 7), 0.3), 40.0), torch.tensor(0.3))
        impulse = torch.zeros(1, 31, 31)
        impulse[0, 15, 15] = 1
        out = gaussian(impulse, 2.0)[0]
        line = torch.exp(-(torch.arange(-15, 16.0) ** 2) / 8)
        line[(torch.arange(-15, 16).abs() > 8)] = 0
        line /= line.sum()
        assert torch.allclose(out, line[:, None] * line, atol=1e-6)

    def test_disc_and_line_sum_to_one(self):
        like = torch.zeros(1)
        assert disc(3.4, 0.5, like).sum() == pytest.approx(1)
        assert sum(weight for _, weight in line_taps(10, 3)) == pytest.approx(1)

    def test_plasma_fills_its_range_and_tiles(self):
        layer = plasma(64, 2.0, torch.Generator().manual_seed(0))
        assert (layer.min(), layer.max()) == (0, 1)
        seam = (layer[:, 0] - layer[:, -1]).abs().mean()
        inside = (layer[:, 1:] - layer[:, :-1]).abs().mean()
        assert seam < 3 * inside
