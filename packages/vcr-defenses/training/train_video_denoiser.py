"""Train the bundled video denoiser: ``python train_video_denoiser.py --seed 0``.

A small ``UNet3DConditionModel`` that predicts the noise of generated motion clips (SynthMotion,
64x64). It works on rearranged pixels: 2x2 blocks become channels, so that nothing is lost and most
of the work is done at 32x32.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.functional import pixel_unshuffle
from vcr_core.datasets.motion.cache import load_split
from vcr_core.datasets.motion.generator import GENERATOR_VERSION
from vcr_defenses.diffusion.schedule import from_config

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor, nn

HERE = Path(__file__).resolve().parent
NAME = "motion-video"
FACTOR = 2

SCHEDULER = {
    "_class_name": "DDIMScheduler",
    "num_train_timesteps": 1000,
    "beta_schedule": "scaled_linear",
    "beta_start": 0.00085,
    "beta_end": 0.012,
    "prediction_type": "epsilon",
    "clip_sample": False,
    "set_alpha_to_one": False,
    "steps_offset": 1,
    "timestep_spacing": "leading",
}
"""The published text-to-video model's, so that the method's constants mean the same."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How the denoiser is trained.

    Attributes:
        clips: the first so many clips of the training stream.
        steps: optimiser steps.
        frames: frames of one step, all clips together.
        lr: peak of the one-cycle schedule.
        weight_decay: of AdamW.
        ema: decay of the average of the weights, which is what is stored.
        last_t: noise levels are drawn from 0 .. last_t; purification needs no others.
        long_share: last part of the training in which clips have 16 frames instead of 8.
        bfloat16: whether the forward pass runs under bfloat16 autocast.
    """

    clips: int = 1600
    steps: int = 1300
    frames: int = 32
    lr: float = 2e-3
    weight_decay: float = 0.01
    ema: float = 0.995
    last_t: int = 199
    long_share: float = 0.2
    bfloat16: bool = True


def build_network() -> nn.Module:
    """Return the untrained network, 0.44 M parameters."""
    from diffusers import UNet3DConditionModel

    return UNet3DConditionModel(
        sample_size=32,
        in_channels=3 * FACTOR**2,
        out_channels=3 * FACTOR**2,
        down_block_types=("DownBlock3D", "DownBlock3D"),
        up_block_types=("UpBlock3D", "UpBlock3D"),
        block_out_channels=(32, 32),
        layers_per_block=1,
        norm_num_groups=8,
        cross_attention_dim=8,
        attention_head_dim=4,
    )


def to_latents(clips: Tensor) -> Tensor:
    """Clips ``[n, t, 3, h, w]`` in [0, 1] to ``[n, 12, t, h / 2, w / 2]`` in [-1, 1]."""
    return pixel_unshuffle(2 * clips - 1, FACTOR).transpose(1, 2)


def draw_clips(clips: NDArray[np.uint8], count: int, length: int, rng: torch.Generator) -> Tensor:
    """``[count, length, 3, 64, 64]``: random parts, mirrored and reversed at random."""
    last = clips.shape[1] - length
    parts = []
    for i in torch.randint(len(clips), (count,), generator=rng).tolist():
        start = int(torch.randint(last + 1, (), generator=rng))
        part = torch.from_numpy(np.array(clips[i, start : start + length]))
        part = part.permute(0, 3, 1, 2).float() / 255
        flips = torch.rand(3, generator=rng) < 0.5
        parts.append(part.flip([d for d, on in zip((0, 2, 3), flips.tolist(), strict=True) if on]))
    return torch.stack(parts)


def draw_noise(like: Tensor, rng: torch.Generator) -> Tensor:
    """Standard normal noise whose frames share a part of it.

    Temporal inversion gives all frames the noise of one. A network that has seen independent
    noise only takes that for a still background and leaves it (Ge et al., ICCV 2023, mix noise
    likewise). Half of the clips have independent frames, a quarter equal ones, a quarter a mix.
    """
    n = len(like)
    kind = torch.rand(n, generator=rng)
    share = torch.rand(n, generator=rng)
    share = torch.where(kind < 0.5, 0.0, torch.where(kind < 0.75, 1.0, share))
    share = share.view(n, 1, 1, 1, 1)
    own = torch.randn(like.shape, generator=rng)
    common = torch.randn(like[:, :, :1].shape, generator=rng)
    return (1 - share).sqrt() * own + share.sqrt() * common


def noise_loss(
    network: nn.Module, latents: Tensor, t: Tensor, noise: Tensor, levels: Tensor, recipe: Recipe
) -> Tensor:
    """Mean squared error of the predicted noise."""
    abar = levels[t].view(-1, 1, 1, 1, 1)
    noisy = abar.sqrt() * latents + (1 - abar).sqrt() * noise
    text = torch.zeros(len(latents), 1, 8)
    with torch.autocast("cpu", torch.bfloat16, enabled=recipe.bfloat16):
        predicted = network(noisy, t, encoder_hidden_states=text).sample
    return (predicted.float() - noise).square().mean()


@torch.no_grad()
def validate(network: nn.Module, clips: NDArray[np.uint8], levels: Tensor) -> dict[str, float]:
    """Noise loss on fixed validation clips at the levels that the defense uses."""
    rng = torch.Generator().manual_seed(1)
    latents = to_latents(draw_clips(clips, 4, 16, rng))
    losses = {}
    for kind, mix in (("independent", 0.0), ("shared", 1.0)):
        own = torch.randn(latents.shape, generator=rng)
        noise = own if mix == 0 else own[:, :, :1].expand_as(own)
        for level in (21, 101):
            t = torch.full((len(latents),), level)
            loss = noise_loss(network, latents, t, noise, levels, Recipe(bfloat16=False))
            losses[f"{kind}_{level}"] = round(float(loss), 4)
    return losses


def store(network: nn.Module, folder: Path) -> str:
    """Write a diffusers folder in half precision and return the sha256 of its weights."""
    import copy

    copy.deepcopy(network).half().save_pretrained(folder / "unet")
    scheduler = folder / "scheduler" / "scheduler_config.json"
    scheduler.parent.mkdir(parents=True, exist_ok=True)
    scheduler.write_text(json.dumps(SCHEDULER, indent=2) + "\n", encoding="utf-8")
    weights = folder / "unet" / "diffusion_pytorch_model.safetensors"
    return hashlib.sha256(weights.read_bytes()).hexdigest()


def train(recipe: Recipe, seed: int, cache: Path, weights: Path, logs: Path) -> None:
    """Train the denoiser; writes its folder and its log."""
    torch.manual_seed(seed)
    rng = torch.Generator().manual_seed(seed)
    clips = load_split(cache, "train", count=recipe.clips).clips
    val = load_split(cache, "val", count=64).clips
    levels = torch.tensor(from_config(SCHEDULER).levels, dtype=torch.float64).float()
    network = build_network()
    average = torch.optim.swa_utils.AveragedModel(
        network, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(recipe.ema)
    )
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=recipe.lr, weight_decay=recipe.weight_decay
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=recipe.lr, total_steps=recipe.steps, pct_start=0.15
    )
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{NAME}.jsonl"
    log.unlink(missing_ok=True)

    def note(**fields: Any) -> None:
        line = json.dumps(fields)
        print(line, flush=True)
        with log.open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")

    note(
        event="start",
        model=NAME,
        seed=seed,
        generator=GENERATOR_VERSION,
        torch=torch.__version__.partition("+")[0],
        parameters=sum(p.numel() for p in network.parameters()),
        recipe=asdict(recipe),
    )
    started, total = time.process_time(), 0.0
    for step in range(recipe.steps):
        length = 16 if step >= (1 - recipe.long_share) * recipe.steps else 8
        latents = to_latents(draw_clips(clips, recipe.frames // length, length, rng))
        t = torch.randint(recipe.last_t + 1, (len(latents),), generator=rng)
        loss = noise_loss(network, latents, t, draw_noise(latents, rng), levels, recipe)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        average.update_parameters(network)
        total += float(loss.detach())
        if (step + 1) % 100 == 0:
            if not math.isfinite(total):
                msg = f"training diverged before step {step + 1}"
                raise RuntimeError(msg)
            note(
                step=step + 1,
                loss=round(total / 100, 4),
                val=validate(average.module, val, levels),
                cpu_seconds=round(time.process_time() - started, 1),
            )
            total = 0.0
            store(average.module, weights / NAME)
    note(event="stored", sha256=store(average.module, weights / NAME))


def main() -> None:
    """Train and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=Recipe.steps)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "vcr-motion")
    parser.add_argument(
        "--weights", type=Path, default=HERE.parent / "src" / "vcr_defenses" / "weights"
    )
    parser.add_argument("--logs", type=Path, default=HERE / "logs")
    arguments = parser.parse_args()
    # One thread: tiny operators lose more in synchronisation than they gain.
    torch.set_num_threads(1)
    recipe = Recipe(steps=arguments.steps)
    train(recipe, arguments.seed, arguments.cache, arguments.weights, arguments.logs)


if __name__ == "__main__":
    main()
