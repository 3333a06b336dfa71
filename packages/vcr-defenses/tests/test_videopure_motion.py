"""The bundled video denoiser on generated clips, and the classifier that it protects."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from pathlib import Path

import pytest
import torch
from vcr_core.datasets.motion.generator import generate_clip
from vcr_core.randomness import VideoRandom
from vcr_defenses.diffusion.schedule import add_noise
from vcr_defenses.diffusion.videopure import VideoPure

pytest.importorskip("diffusers", reason="the bundled model is diffusers'")
build = pytest.importorskip("vcr_models.tiny.build", reason="the classifier is vcr-models'")

LOG = Path(__file__).parents[1] / "training" / "logs" / "motion-video.jsonl"


def clips_of(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``[count, 16, 3, 64, 64]`` clips of the validation stream and their labels."""
    made = [generate_clip("val", index) for index in range(count)]
    frames = torch.stack([torch.from_numpy(clip.frames) for clip in made])
    labels = torch.tensor([clip.motion for clip in made])
    return frames.permute(0, 1, 4, 2, 3).float() / 255, labels


def pgd(model, clips, labels, eps: float, steps: int = 20) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    noise = (torch.rand(clips.shape, generator=generator) * 2 - 1) * eps
    for _ in range(steps):
        attacked = (clips + noise).clamp(0, 1).requires_grad_()
        logits = model.logits(attacked).mean(dim=1)
        loss = torch.nn.functional.cross_entropy(logits, labels, reduction="sum")
        (gradient,) = torch.autograd.grad(loss, attacked)
        noise = (noise + eps / 8 * gradient.sign()).clamp(-eps, eps)
    return ((clips + noise).clamp(0, 1) * 255).round() / 255


def right(model, defense, clips, labels) -> int:
    """Return how many clips the defended model classifies correctly."""

    def predict(shown):
        return model.logits(shown[:, 0]).mean(dim=1).log_softmax(dim=1)

    with torch.no_grad():
        defended = defense.wrap(predict, VideoRandom(list(range(len(clips)))))
        return int((defended(clips.unsqueeze(1)).argmax(dim=1) == labels).sum())


@pytest.mark.parametrize("shared", [False, True])
def test_the_bundled_model_predicts_noise_of_its_own_or_common_to_all_frames(shared):
    model = VideoPure().model
    z = model.encode(clips_of(1)[0][0])
    noise = torch.randn(z.shape, generator=torch.Generator().manual_seed(1))
    if shared:
        noise = noise[:, :, :1].expand_as(noise)
    for step, most in ((21, 0.3), (101, 0.12)):
        noisy = add_noise(z, noise, model.schedule.abar(step))
        error = (model.predict_eps(noisy, step) - noise).square().mean()
        assert float(error) < most


@pytest.mark.skipif(not LOG.exists(), reason="training logs are not part of a source archive")
def test_the_shipped_weights_are_those_of_the_log():
    folder = Path(str(files("vcr_defenses") / "weights" / "motion-video"))
    found = hashlib.sha256((folder / "unet/diffusion_pytorch_model.safetensors").read_bytes())
    last = json.loads(LOG.read_text().splitlines()[-1])
    assert last["sha256"] == found.hexdigest()
    assert sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) < 1.5e6


def test_attacked_videos_are_classified_correctly_again():
    clips, labels = clips_of(2)
    model = build.TinyClassifier.load("tiny-r3d")
    attacked = pgd(model, clips, labels, 2 / 255)
    assert not (model.logits(attacked).mean(dim=1).argmax(dim=1) == labels).any()
    assert right(model, VideoPure(), attacked, labels) >= 1


@pytest.mark.slow
def test_purification_restores_most_attacked_videos_and_keeps_clean_ones():
    clips, labels = clips_of(32)
    model = build.TinyClassifier.load("tiny-r3d")
    attacked = torch.cat(
        [pgd(model, c, y, 2 / 255) for c, y in zip(clips.split(8), labels.split(8), strict=True)]
    )
    bare = int((model.logits(attacked).mean(dim=1).argmax(dim=1) == labels).sum())
    assert bare < 0.3 * 32
    assert right(model, VideoPure(), clips, labels) >= 0.8 * 32
    assert right(model, VideoPure(), attacked, labels) >= bare + 0.3 * 32
