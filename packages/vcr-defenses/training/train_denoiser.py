"""Train the bundled denoiser: ``python train_denoiser.py --seed 0``.

Frames are generated (SynthMotion, 64x64). The network predicts noise at steps 0 .. 199 of the usual
linear schedule of 1000; purification never adds more, so its schedule ends there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel
from safetensors.torch import save
from vcr_core.datasets.motion.cache import load_split
from vcr_core.datasets.motion.generator import GENERATOR_VERSION
from vcr_defenses.diffusion.schedule import from_config

if TYPE_CHECKING:
    from torch import Tensor

HERE = Path(__file__).resolve().parent
LOGS = HERE / "logs"
WEIGHTS = HERE.parent / "src" / "vcr_defenses" / "weights" / "motion-ddpm"
PROBES = (9, 29, 49, 99, 199)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Hyper-parameters.

    Attributes:
        clips: the first so many clips of the training stream.
        frames: frames drawn of each clip; few, because frames of one clip resemble each other.
        steps: optimizer steps.
        batch: frames per step.
        lr: peak of the one-cycle schedule.
        warmup: fraction of the steps over which the rate rises.
        weight_decay: of AdamW.
        ema: decay of the averaged weights, which are what is stored.
        channels: width of each resolution, from the finest on.
        blocks: residual blocks per resolution.
        noise_steps: steps are drawn uniformly below this.
    """

    clips: int = 6400
    frames: int = 4
    steps: int = 3600
    batch: int = 32
    lr: float = 2e-3
    warmup: float = 0.1
    weight_decay: float = 1e-4
    ema: float = 0.995
    channels: tuple[int, ...] = (16, 32, 64)
    blocks: int = 1
    noise_steps: int = 200


def build(recipe: Recipe) -> UNet2DModel:
    """Return the network with random weights."""
    depth = len(recipe.channels)
    return UNet2DModel(
        sample_size=64,
        in_channels=3,
        out_channels=3,
        block_out_channels=recipe.channels,
        layers_per_block=recipe.blocks,
        norm_num_groups=8,
        down_block_types=("DownBlock2D",) * depth,
        up_block_types=("UpBlock2D",) * depth,
        add_attention=False,
    )


def scheduler(recipe: Recipe) -> DDPMScheduler:
    """Return the first steps of the linear schedule of 1000 steps, 1e-4 .. 0.02."""
    last = 1e-4 + (0.02 - 1e-4) * (recipe.noise_steps - 1) / 999
    return DDPMScheduler(num_train_timesteps=recipe.noise_steps, beta_start=1e-4, beta_end=last)


def augment(x: Tensor, rng: torch.Generator) -> Tensor:
    """Mirror and transpose frames ``[N, 3, H, H]`` at random: symmetries of the data."""
    for flip in (lambda a: a.flip(3), lambda a: a.flip(2), lambda a: a.transpose(2, 3)):
        chosen = torch.rand(len(x), 1, 1, 1, generator=rng) < 0.5
        x = torch.where(chosen, flip(x), x)
    return x


def to_model(frames: Tensor) -> Tensor:
    """Map uint8 ``[N, H, W, 3]`` to ``[N, 3, H, W]`` in [-1, 1]."""
    return frames.permute(0, 3, 1, 2).float().div(127.5).sub(1)


@torch.no_grad()
def losses(network: UNet2DModel, frames: Tensor, abar: Tensor) -> dict[str, float]:
    """Return the mean squared error of the predicted noise at single steps."""
    network.eval()
    rng = torch.Generator().manual_seed(0)
    out = {}
    for step in PROBES:
        noise = torch.randn(frames.shape, generator=rng)
        noisy = abar[step].sqrt() * frames + (1 - abar[step]).sqrt() * noise
        out[str(step)] = round(float(F.mse_loss(network(noisy, step).sample, noise)), 5)
    return out


def store(weights: dict[str, Tensor], network: UNet2DModel, recipe: Recipe, about: str) -> str:
    """Write a folder that diffusers can load, weights in half precision; return their sha256."""
    DDPMPipeline(network, scheduler(recipe)).save_config(WEIGHTS)
    network.save_config(WEIGHTS / "unet")
    scheduler(recipe).save_config(WEIGHTS / "scheduler")
    halves = {key: value.detach().half().contiguous() for key, value in weights.items()}
    content = save(halves, metadata={"format": "pt", "about": about})
    partial = WEIGHTS / "unet" / "diffusion_pytorch_model.part"
    partial.write_bytes(content)
    partial.replace(partial.with_suffix(".safetensors"))
    return hashlib.sha256(content).hexdigest()


def train(recipe: Recipe, seed: int, cache: Path) -> None:
    """Train, writing the log as it goes and the weights at the end."""
    torch.manual_seed(seed)
    rng = torch.Generator().manual_seed(seed)
    path = load_split(cache, "train", count=recipe.clips, frames=recipe.frames).path
    pixels = torch.from_numpy(np.load(path)).flatten(0, 1)
    probes = load_split(cache, "val").clips[:, 7]
    val = to_model(torch.from_numpy(probes.copy()))
    abar = torch.tensor(from_config(scheduler(recipe).config).levels)
    network = build(recipe)
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=recipe.lr, weight_decay=recipe.weight_decay
    )
    cycle = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=recipe.lr, total_steps=recipe.steps, pct_start=recipe.warmup
    )
    averaged = torch.optim.swa_utils.AveragedModel(
        network, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(recipe.ema)
    )
    LOGS.mkdir(exist_ok=True)
    log = LOGS / "motion-ddpm.jsonl"
    log.unlink(missing_ok=True)

    def note(**fields: Any) -> None:
        line = json.dumps(fields)
        print(line, flush=True)
        with log.open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")

    about = {
        "denoiser": "motion-ddpm",
        "seed": seed,
        "dataset": "motion",
        "generator": GENERATOR_VERSION,
        "torch": torch.__version__.partition("+")[0],
        "recipe": asdict(recipe),
    }
    note(event="start", parameters=sum(p.numel() for p in network.parameters()), **about)
    started, total, count = time.process_time(), 0.0, 0
    network.train()
    for step in range(recipe.steps):
        picked = torch.randint(len(pixels), (recipe.batch,), generator=rng)
        x = augment(to_model(pixels[picked]), rng)
        t = torch.randint(recipe.noise_steps, (recipe.batch,), generator=rng)
        noise = torch.randn(x.shape, generator=rng)
        level = abar[t].view(-1, 1, 1, 1)
        noisy = level.sqrt() * x + (1 - level).sqrt() * noise
        with torch.autocast("cpu", torch.bfloat16):
            predicted = network(noisy, t).sample
        loss = F.mse_loss(predicted.float(), noise)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        cycle.step()
        averaged.update_parameters(network)
        total, count = total + loss.item(), count + 1
        if (step + 1) % 200 == 0:
            spent = round(time.process_time() - started, 1)
            note(event="steps", step=step + 1, loss=round(total / count, 5), cpu_s=spent)
            total, count = 0.0, 0
    weights = averaged.module.state_dict()
    digest = store(weights, network, recipe, json.dumps(about, sort_keys=True))
    stored = UNet2DModel.from_pretrained(WEIGHTS / "unet", torch_dtype=torch.float32)
    spent = round(time.process_time() - started, 1)
    note(event="stored", cpu_s=spent, sha256=digest, val_loss=losses(stored, val, abar))


def main() -> None:
    """Parse arguments and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=Recipe.steps)
    default = Path(tempfile.gettempdir()) / "vcr-motion"
    parser.add_argument("--cache", type=Path, default=default, help="folder of generated clips")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    train(Recipe(steps=arguments.steps), arguments.seed, arguments.cache)


if __name__ == "__main__":
    main()
