"""The real way through diffusers: small models saved, loaded and used as a user does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from vcr_core.errors import ComponentUnavailable
from vcr_core.randomness import VideoRandom
from vcr_defenses.diffusion import schedule as sched
from vcr_defenses.diffusion.diffpure import DiffPure
from vcr_defenses.diffusion.frame_model import find_frame_model
from vcr_defenses.diffusion.freqpure import FreqPure
from vcr_defenses.diffusion.one_shot import OneShotDenoiser
from vcr_defenses.params.diffusion import DiffPureParams, FrameDenoiserParams, FreqPureParams

diffusers = pytest.importorskip("diffusers")


@pytest.fixture(scope="module")
def random_pipeline(tmp_path_factory) -> Path:
    """Save an untrained pipeline as diffusers lays it out."""
    from vcr_core.seeding import isolated_random_state

    folder = tmp_path_factory.mktemp("pipeline")
    with isolated_random_state(0):
        unet = diffusers.UNet2DModel(
            sample_size=16,
            in_channels=3,
            out_channels=3,
            block_out_channels=(16, 32),
            layers_per_block=1,
            norm_num_groups=8,
            down_block_types=("DownBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "UpBlock2D"),
            attention_head_dim=8,
        )
    diffusers.DDPMPipeline(unet, diffusers.DDPMScheduler()).save_pretrained(folder)
    return folder


def clips(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("fit", ["resize", "tile", "native"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_saved_pipeline_purifies_frames_of_any_size(random_pipeline, fit, dtype):
    given = {"denoiser": str(random_pipeline), "fit": fit, "dtype": dtype, "chunk": 3}
    defenses = [
        DiffPure(DiffPureParams(noise_steps=3, **given)),
        FreqPure(FreqPureParams(noise_steps=9, denoise_steps=2, **given)),
    ]
    x = clips(2, 1, 2, 3, 13, 30)
    for defense in defenses:
        out = defense.apply(x, VideoRandom([1, 2]))
        assert out.shape == x.shape
        assert out.dtype == torch.float32
        assert 0 <= out.min() <= out.max() <= 1
        assert torch.equal(out, defense.apply(x, VideoRandom([1, 2])))
        assert (out - x).abs().max() > 1e-3


def test_one_shot_denoising_of_a_saved_pipeline_has_a_gradient(random_pipeline):
    one = OneShotDenoiser(FrameDenoiserParams(denoiser=str(random_pipeline)), "denoised-smoothing")
    x = clips(1, 2, 3, 16, 16).requires_grad_()
    out = one(x, 0.25)
    assert out.shape == x.shape
    (gradient,) = torch.autograd.grad(out.sum(), x)
    assert gradient.abs().max() > 0


def test_files_side_by_side_are_read_like_those_in_folders(random_pipeline, tmp_path):
    for part in ("unet", "scheduler"):
        for file in (random_pipeline / part).iterdir():
            shutil.copy(file, tmp_path / file.name)
    flat, nested = (
        DiffPure(DiffPureParams(denoiser=str(folder), noise_steps=2))
        for folder in (tmp_path, random_pipeline)
    )
    x = clips(1, 1, 1, 3, 16, 16)
    assert torch.equal(flat.apply(x, VideoRandom([1])), nested.apply(x, VideoRandom([1])))


def test_weights_that_do_not_fit_the_configuration_are_refused(random_pipeline, tmp_path):
    shutil.copytree(random_pipeline, tmp_path / "broken")
    file = tmp_path / "broken" / "unet" / "config.json"
    config = json.loads(file.read_text()) | {"block_out_channels": [8, 32]}
    file.write_text(json.dumps(config))
    defense = DiffPure(DiffPureParams(denoiser=str(tmp_path / "broken"), noise_steps=2))
    with pytest.raises(ComponentUnavailable, match="cannot be loaded as UNet2DModel"):
        defense.apply(clips(1, 1, 1, 3, 16, 16), VideoRandom([1]))


def test_the_bundled_denoiser_is_small_and_says_how_far_it_was_trained():
    info = find_frame_model("motion-ddpm", "diffpure")
    assert (info.size, len(info.schedule), info.multiple) == (64, 200, 4)
    whole = sched.from_config({})
    assert info.schedule.levels == pytest.approx(whole.levels[:200])
    assert sum(file.stat().st_size for file in info.path.rglob("*")) < 1_400_000


def test_the_bundled_denoiser_takes_noise_off_unseen_frames():
    """At 0.1 the noise is 20 dB below white; what is left has to be far less."""
    from vcr_core.datasets.motion.generator import generate_clip

    frames = torch.from_numpy(generate_clip("test", 5, frames=2).frames)
    x = frames.permute(0, 3, 1, 2).float() / 255
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
    one = OneShotDenoiser(FrameDenoiserParams(), "denoised-smoothing")
    left = float((one(x + 0.1 * noise, 0.1) - x).square().mean())
    assert left < 0.1**2 / 8


def test_the_diffusers_pipeline_opens_the_bundled_denoiser():
    pipeline = diffusers.DDPMPipeline.from_pretrained(find_frame_model("motion-ddpm", "x").path)
    assert len(pipeline.scheduler.betas) == 200


def test_purification_undoes_an_attack_that_does_not_know_it():
    """Twelve videos, two levels: most of the attacked ones come back, clean ones stay."""
    build = pytest.importorskip("vcr_models.tiny.build")
    from vcr_core.datasets.motion.generator import generate_clip

    model = build.TinyClassifier.load("tiny-r3d")
    made = [generate_clip("val", index) for index in range(12)]
    x = torch.stack([torch.from_numpy(clip.frames) for clip in made])
    x = x.permute(0, 1, 4, 2, 3).float() / 255
    labels = torch.tensor([clip.motion for clip in made])
    adversarial = x.clone()
    for _ in range(8):
        point = adversarial.requires_grad_()
        loss = torch.nn.functional.cross_entropy(model.logits(point).mean(1), labels)
        (gradient,) = torch.autograd.grad(loss, point)
        step = adversarial.detach() + 0.5 / 255 * gradient.sign()
        adversarial = torch.minimum(torch.maximum(step, x - 2 / 255), x + 2 / 255).clamp(0, 1)

    defense = DiffPure(DiffPureParams(noise_steps=30, denoise_steps=2))

    def right(videos: torch.Tensor) -> int:
        with torch.no_grad():
            return int((model.logits(videos).mean(1).argmax(1) == labels).sum())

    purified = [
        defense.apply(videos[:, None], VideoRandom(range(12)))[:, 0] for videos in (x, adversarial)
    ]
    undefended = right(adversarial)
    assert undefended <= 3
    assert right(purified[0]) >= 11
    assert right(purified[1]) >= undefended + 4
