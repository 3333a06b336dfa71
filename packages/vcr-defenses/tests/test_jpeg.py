from __future__ import annotations

import io

import pytest
import torch
from vcr_core.adaptive import DefenseLink, View
from vcr_core.protocols import ClipSpec
from vcr_core.randomness import VideoRandom
from vcr_defenses.jpeg import Jpeg
from vcr_defenses.jpeg_codec import CHROMINANCE, LUMINANCE, quantisation_table, soft_round
from vcr_defenses.params.spatial import JpegParams

RANDOM = VideoRandom([0])
ZIGZAG = sorted(
    ((u, v) for u in range(8) for v in range(8)),
    key=lambda p: (p[0] + p[1], p[0] if (p[0] + p[1]) % 2 else p[1]),
)


def psnr(one: torch.Tensor, other: torch.Tensor) -> float:
    return float(-10 * (one - other).square().mean().log10())


@pytest.mark.golden
@pytest.mark.parametrize("quality", [10, 50, 75, 90])
def test_tables_equal_the_encoder_s(quality):
    image = pytest.importorskip("PIL.Image", reason="the oracle needs Pillow")
    buffer = io.BytesIO()
    image.new("RGB", (16, 16)).save(buffer, "JPEG", quality=quality)
    with image.open(buffer) as loaded:
        tables = loaded.quantization
    for number, base in ((0, LUMINANCE), (1, CHROMINANCE)):
        own = quantisation_table(base, quality)
        flat = [v for row in own for v in row]
        stored = list(tables[number])
        assert stored in (flat, [own[u][v] for u, v in ZIGZAG])


@pytest.mark.parametrize("subsampling", ["4:2:0", "4:4:4"])
@pytest.mark.parametrize("quality", [30, 75, 90])
@pytest.mark.parametrize("size", [(48, 64), (33, 50), (15, 23)])
def test_torch_matches_pil(subsampling, quality, size, make_clips, smooth_clips):
    smooth = smooth_clips[..., : size[0], : size[1]]
    noise = (make_clips(1, 1, 4, 3, *size) - 0.5) * 24
    noisy = (smooth * 255 + noise).round() / 255
    for clips in (noisy, smooth):
        both = [
            Jpeg(JpegParams(quality=quality, subsampling=subsampling, backend=backend)).apply(
                clips, RANDOM
            )
            for backend in ("pil", "torch")
        ]
        # Coefficients near the middle of a step are rounded the other way by the integer
        # transform of libjpeg; everything else agrees.
        limit = 1.0 if subsampling == "4:4:4" else 1.4
        assert float((both[0] - both[1]).abs().mean()) * 255 < limit


@pytest.mark.parametrize("backend", ["pil", "torch"])
def test_constant_frames_are_nearly_reproduced(backend):
    generator = torch.Generator().manual_seed(0)
    colours = torch.randint(0, 256, (1, 1, 50, 3, 1, 1), generator=generator) / 255
    clips = colours.expand(1, 1, 50, 3, 16, 24).contiguous()
    out = Jpeg(JpegParams(backend=backend)).apply(clips, RANDOM)
    assert float((out - clips).abs().max()) * 255 <= 3.001


@pytest.mark.parametrize("backend", ["pil", "torch"])
def test_more_quality_is_never_worse(backend, make_clips, smooth_clips):
    for clips in (make_clips(1, 1, 1, 3, 32, 40), smooth_clips):
        values = [
            psnr(Jpeg(JpegParams(quality=q, backend=backend)).apply(clips, RANDOM), clips)
            for q in (10, 30, 50, 75, 95)
        ]
        assert values == sorted(values)


@pytest.mark.parametrize("backend", ["pil", "torch"])
def test_a_second_pass_changes_less(backend, make_clips):
    clips = make_clips(1, 1, 1, 3, 48, 48)
    defense = Jpeg(JpegParams(backend=backend))
    first = defense.apply(clips, RANDOM)
    second = defense.apply(first, RANDOM)
    assert float((second - first).abs().mean()) < 0.6 * float((first - clips).abs().mean())


@pytest.mark.parametrize("backend", ["pil", "torch"])
def test_frames_are_independent_and_results_on_the_grid(backend, make_clips, monkeypatch):
    clips = make_clips(1, 1, 4, 3, 17, 23)
    defense = Jpeg(JpegParams(backend=backend))
    out = defense.apply(clips, RANDOM)
    order = torch.tensor([2, 0, 3, 1])
    assert torch.equal(defense.apply(clips[:, :, order], RANDOM), out[:, :, order])
    assert torch.equal((out * 255).round() / 255, out)
    monkeypatch.setattr("vcr_defenses.jpeg._CHUNK_ELEMENTS", 1)
    assert torch.equal(defense.apply(clips, RANDOM), out)


def test_float_input_is_rounded_not_truncated():
    clips = torch.full((1, 1, 1, 3, 8, 8), 99.6 / 255)
    assert torch.equal(Jpeg().apply(clips, RANDOM), torch.full_like(clips, 100 / 255))


def test_surrogate_is_close_to_the_codec(make_clips):
    clips = make_clips(1, 1, 1, 3, 32, 40)
    for surrogate in ("cubic", "straight-through"):
        defense = Jpeg(JpegParams(surrogate=surrogate))
        gap = defense.surrogate(clips, RANDOM) - defense.apply(clips, RANDOM)
        blind = clips - defense.apply(clips, RANDOM)
        assert float(gap.abs().mean()) < 0.35 * float(blind.abs().mean())
    identity = Jpeg(JpegParams(surrogate="identity"))
    assert torch.equal(identity.surrogate(clips, RANDOM), clips)


@pytest.mark.parametrize("subsampling", ["4:2:0", "4:4:4"])
def test_surrogate_gradient_matches_finite_differences(subsampling):
    # A step size in the table's middle: far from the points where rounding jumps.
    generator = torch.Generator().manual_seed(1)
    clips = torch.rand(1, 1, 1, 3, 5, 6, generator=generator, dtype=torch.float64) * 0.4 + 0.3
    defense = Jpeg(JpegParams(subsampling=subsampling, quality=75))
    assert torch.autograd.gradcheck(
        lambda c: defense.surrogate(c, RANDOM), clips.requires_grad_(), eps=1e-8, atol=1e-4
    )


def test_soft_round():
    values = torch.tensor([-1.5, -0.25, 0.0, 0.4, 2.0], requires_grad=True)
    rounded = soft_round(values)
    expected = torch.tensor([-1.875, -0.015625, 0.0, 0.064, 2.0])
    torch.testing.assert_close(rounded, expected)
    gradient = torch.autograd.grad(rounded.sum(), values)[0]
    torch.testing.assert_close(gradient, torch.tensor([0.75, 0.1875, 0.0, 0.48, 0.0]))


class _Linear:
    """Two classes; the second logit is a fixed random projection of the clip."""

    clip = ClipSpec(frames=2)

    def logits(self, clips: torch.Tensor) -> torch.Tensor:
        weights = torch.randn(clips[0].shape, generator=torch.Generator().manual_seed(4))
        score = (clips * weights).flatten(1).sum(1)
        return torch.stack([torch.zeros_like(score), score], dim=1).unsqueeze(1)


@pytest.mark.parametrize("surrogate", ["cubic", "straight-through", "identity"])
def test_an_adaptive_attacker_gets_a_useful_gradient(surrogate, smooth_clips):
    video = smooth_clips[:, 0, :2].clone().requires_grad_()
    defense = Jpeg(JpegParams(surrogate=surrogate))
    gather = torch.arange(2).view(1, 2)
    view = View(_Linear(), gather, [DefenseLink("jpeg", defense, "surrogate", False)])
    score = view(video, RANDOM)[0]
    with torch.no_grad():
        assert torch.equal(view(video, RANDOM)[0], score)
    gradient = torch.autograd.grad(score[1], video)[0]
    assert torch.isfinite(gradient).all()
    assert (gradient != 0).float().mean() > 0.9
    with torch.no_grad():
        # A step of the gradient's sign, through the real codec, has to raise the score.
        moved = view((video + 8 / 255 * gradient.sign()).clamp(0, 1), RANDOM)[0]
    assert moved[1] > score[1]


def test_grey_clips_are_refused():
    with pytest.raises(ValueError, match="RGB"):
        Jpeg().apply(torch.zeros(1, 1, 1, 1, 8, 8), RANDOM)
