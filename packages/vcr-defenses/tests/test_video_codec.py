from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from vcr_defenses.codec_pass import Coding, recode
from vcr_defenses.params.spatial import VideoCodecParams
from vcr_defenses.video_codec import VideoCodec, coding_of

CODECS = ("h264", "vp9", "mpeg4", "mjpeg")
every_codec = pytest.mark.parametrize("codec", CODECS)


def psnr(one: torch.Tensor, other: torch.Tensor) -> float:
    return float(-10 * torch.log10((one - other).square().mean()))


@every_codec
@pytest.mark.parametrize("shape", [(1, 2, 5, 3, 33, 51), (2, 1, 1, 3, 9, 5), (1, 1, 2, 3, 1, 18)])
def test_odd_sizes_and_short_clips_come_back_whole(codec, shape, make_clips, make_random):
    clips = make_clips(*shape)
    defense = VideoCodec(VideoCodecParams(codec=codec))
    out = defense.apply(clips, make_random(shape[0]))
    assert out.shape == clips.shape
    assert torch.equal(out, (out * 255).round() / 255)
    assert torch.equal(out, defense.apply(clips, make_random(shape[0], seed=1)))


@every_codec
@pytest.mark.parametrize("size", [(34, 64), (64, 64), (64, 96), (64, 80)])
def test_the_same_frames_give_the_same_bytes(codec, size):
    frames = np.random.default_rng(0).integers(0, 256, (5, *size, 3), dtype=np.uint8)
    coding = coding_of(VideoCodecParams(codec=codec))
    first, *others = (recode(frames, coding) for _ in range(4))
    for other in others:
        np.testing.assert_array_equal(first, other)


@every_codec
def test_frames_come_back_in_their_order(codec, make_random):
    """Codecs store frames in another order than they show them."""
    levels = torch.linspace(0.1, 0.9, 12).view(1, 1, 12, 1, 1, 1)
    out = VideoCodec(VideoCodecParams(codec=codec)).apply(
        levels.expand(1, 1, 12, 3, 32, 48), make_random(1)
    )
    means = out.mean(dim=(3, 4, 5)).flatten()
    assert torch.equal(means.argsort(), torch.arange(12))
    torch.testing.assert_close(means, levels.flatten(), rtol=0, atol=0.03)


@pytest.mark.parametrize(
    ("codec", "key", "ladder"),
    [
        ("h264", "crf", (17, 23, 30, 37, 44, 51)),
        ("vp9", "crf", (10, 30, 50)),
        ("mpeg4", "qscale", (2, 8, 31)),
        ("mjpeg", "qscale", (2, 8, 31)),
    ],
)
def test_quality_falls_along_the_ladder(codec, key, ladder, smooth_clips, make_random):
    found = [
        psnr(
            VideoCodec(VideoCodecParams(codec=codec, **{key: step})).apply(
                smooth_clips, make_random(1)
            ),
            smooth_clips,
        )
        for step in ladder
    ]
    assert all(b <= a + 0.05 for a, b in pairwise(found)), found
    assert found[-1] < found[0] - 3


@every_codec
def test_a_still_video_stays_still_and_a_constant_stays(codec, smooth_clips, make_random):
    still = smooth_clips[:, :, :1].expand(1, 1, 10, 3, 48, 64)
    out = VideoCodec(VideoCodecParams(codec=codec)).apply(still, make_random(1))
    assert float(out.diff(dim=2).abs().mean()) < 2 / 255
    grey = torch.full((1, 1, 4, 3, 32, 32), 0.7)
    out = VideoCodec(VideoCodecParams(codec=codec)).apply(grey, make_random(1))
    assert float((out - grey).abs().max()) <= 4 / 255


def test_chroma_subsampling_is_the_loss_at_the_best_quality(make_random):
    generator = torch.Generator().manual_seed(0)
    blocks = torch.rand(1, 1, 4, 3, 12, 16, generator=generator)
    colourful = blocks.repeat_interleave(3, dim=4).repeat_interleave(3, dim=5)
    found = {
        pix_fmt: psnr(
            VideoCodec(VideoCodecParams(crf=0, pix_fmt=pix_fmt)).apply(colourful, make_random(1)),
            colourful,
        )
        for pix_fmt in ("yuv420p", "yuv444p")
    }
    assert found["yuv420p"] < 35
    assert found["yuv444p"] > 45


def test_a_codec_that_fails_says_so():
    frames = np.zeros((2, 16, 16, 3), dtype=np.uint8)
    with pytest.raises(RuntimeError, match="no-such-codec could not recode 2 frames of 16x16"):
        recode(frames, Coding("no-such-codec", "h264", "yuv420p", {}, 25))
    with pytest.raises(RuntimeError, match="libx264 could not recode"):
        recode(frames, Coding("libx264", "h264", "yuv420p", {"preset": "no-such"}, 25))


def test_only_rgb(make_random):
    with pytest.raises(ValueError, match="RGB"):
        VideoCodec().apply(torch.zeros(1, 1, 2, 1, 16, 16), make_random(1))
