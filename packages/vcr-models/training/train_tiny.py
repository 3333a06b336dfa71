"""Train the bundled tiny classifiers: ``python train_tiny.py tiny-r3d --seed 0``.

Data are generated (SynthMotion, 64x64) and pooled to the 32x32 pixels that the networks see, once.
A perturbation of a pooled pixel by at most eps is what one of its 2x2 source pixels by at most eps
amounts to, so adversarial training may work on pooled clips.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from recipes import RECIPES, Recipe
from safetensors.torch import save
from torch import nn
from vcr_core.datasets.motion.cache import load_split
from vcr_core.datasets.motion.generator import GENERATOR_VERSION
from vcr_core.datasets.motion.labels import MIRROR_X, MIRROR_Y, TIME_REVERSAL
from vcr_models.tiny.networks import NUM_CLASSES, build_network

if TYPE_CHECKING:
    from torch import Tensor

HERE = Path(__file__).resolve().parent
LOGS = HERE / "logs"
WEIGHTS = HERE.parent / "src" / "vcr_models" / "weights"


def pooled_split(folder: Path, split: str, count: int | None = None) -> tuple[Tensor, Tensor]:
    """Pooled clips and labels of a split.

    Returns:
        ``[n, T, 3, 32, 32]`` int16, sums of 2x2 source pixels in 0..1020, and ``[n]`` labels.
    """
    arrays = load_split(folder, split, count=count)
    path = arrays.path.with_suffix(".pooled.npy")
    if not path.exists():
        n, t, h, w, c = arrays.clips.shape
        partial = path.with_suffix(f".{os.getpid()}.part")
        pooled = np.lib.format.open_memmap(
            partial, mode="w+", dtype=np.int16, shape=(n, t, c, h // 2, w // 2)
        )
        for i in range(n):
            blocks = arrays.clips[i].reshape(t, h // 2, 2, w // 2, 2, c)
            pooled[i] = blocks.sum(axis=(2, 4), dtype=np.int16).transpose(0, 3, 1, 2)
        pooled.flush()
        partial.replace(path)
    return torch.from_numpy(np.load(path, mmap_mode="c")), torch.from_numpy(arrays.motion)


def to_float(pooled: Tensor) -> Tensor:
    """Sums of four uint8 pixels to their mean in [0, 1]."""
    return pooled.float() / 1020.0


def augment(x: Tensor, y: Tensor, recipe: Recipe, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Random time reversal and mirroring with the label maps, cyclic shift, gain and offset.

    Args:
        x: ``[B, T, 3, 32, 32]`` in [0, 1].
        y: ``[B]`` motion labels.
        recipe: sizes of the changes.
        rng: source of all draws.
    """
    n = len(x)
    for dim, table in ((1, TIME_REVERSAL), (4, MIRROR_X), (3, MIRROR_Y)):
        chosen = torch.rand(n, generator=rng) < 0.5
        x = torch.where(chosen[:, None, None, None, None], x.flip(dim), x)
        y = torch.where(chosen, torch.tensor(table)[y], y)
    shifts = torch.randint(-recipe.shift, recipe.shift + 1, (n, 2), generator=rng).tolist()
    x = torch.stack([torch.roll(clip, s, dims=(2, 3)) for clip, s in zip(x, shifts, strict=True)])
    gain = 1.0 + recipe.gain * (2.0 * torch.rand((n, 1, 1, 1, 1), generator=rng) - 1.0)
    offset = recipe.offset * (2.0 * torch.rand((n, 1, 1, 1, 1), generator=rng) - 1.0)
    return (x * gain + offset).clamp(0.0, 1.0), y


def pgd(
    network: nn.Module, x: Tensor, y: Tensor, eps: float, steps: int, rng: torch.Generator
) -> Tensor:
    """Projected sign-gradient ascent on the cross-entropy from a random start, in [0, 1].

    Runs in evaluation mode, so that batch statistics are not touched; restores training mode.
    """
    network.eval()
    network.requires_grad_(False)
    noise = torch.rand(x.shape, generator=rng).mul_(2.0 * eps).sub_(eps)
    for _ in range(steps):
        adv = noise.add(x).clamp_(0.0, 1.0).requires_grad_(True)
        (grad,) = torch.autograd.grad(F.cross_entropy(network(adv), y), adv)
        noise.add_(grad.sign_(), alpha=eps * 2.0 / steps).clamp_(-eps, eps)
    network.requires_grad_(True)
    network.train()
    return noise.add_(x).clamp_(0.0, 1.0)


def accuracy(network: nn.Module, clips: Tensor, labels: Tensor, *, eps: float = 0.0) -> float:
    """Top-1 accuracy in evaluation mode; under ten steps of PGD if ``eps`` is positive."""
    was_training = network.training
    rng = torch.Generator().manual_seed(0)
    right = 0
    for i in range(0, len(clips), 64):
        x, y = to_float(clips[i : i + 64]), labels[i : i + 64]
        if eps > 0.0:
            x = pgd(network, x, y, eps, 10, rng)
        network.eval()
        with torch.no_grad():
            right += int((network(x).argmax(dim=1) == y).sum())
    network.train(was_training)
    return right / len(clips)


def same_predictions(one: nn.Module, other: nn.Module, clips: Tensor) -> float:
    """Share of clips that two networks in evaluation mode give the same class."""
    same = 0
    with torch.no_grad():
        for i in range(0, len(clips), 64):
            x = to_float(clips[i : i + 64])
            same += int((one(x).argmax(dim=1) == other(x).argmax(dim=1)).sum())
    return same / len(clips)


def loss_of(
    network: nn.Module, x: Tensor, y: Tensor, recipe: Recipe, eps: float, rng: torch.Generator
) -> Tensor:
    """Training loss of one batch."""
    smoothing = recipe.label_smoothing
    if eps <= 0.0:
        with torch.autocast("cpu", torch.bfloat16, enabled=recipe.bfloat16):
            scores = network(x)
        return F.cross_entropy(scores.float(), y, label_smoothing=smoothing)
    adv = pgd(network, x, y, eps, recipe.pgd_steps, rng)
    loss = F.cross_entropy(network(adv), y, label_smoothing=smoothing)
    if recipe.clean_share > 0.0:
        clean = F.cross_entropy(network(x), y, label_smoothing=smoothing)
        loss = (1.0 - recipe.clean_share) * loss + recipe.clean_share * clean
    return loss


def store(network: nn.Module, name: str, path: Path, about: dict[str, Any]) -> str:
    """Write the weights atomically and return the file's sha256."""
    tensors = {key: value.detach().contiguous() for key, value in network.state_dict().items()}
    if about["recipe"]["float16"]:
        tensors = {k: v.half() if v.is_floating_point() else v for k, v in tensors.items()}
    content = save(tensors, metadata={name: json.dumps(about, sort_keys=True)})
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    partial.write_bytes(content)
    partial.replace(path)
    return hashlib.sha256(content).hexdigest()


def train(name: str, recipe: Recipe, seed: int, cache: Path, weights: Path, logs: Path) -> None:
    """Train one model; writes its weights every epoch and its log."""
    torch.manual_seed(seed)
    rng = torch.Generator().manual_seed(seed)
    clips, labels = pooled_split(cache, "train", recipe.clips)
    val = pooled_split(cache, "val")
    network = build_network(name)
    if recipe.start:
        start = (weights / f"{recipe.start}.safetensors").read_bytes()
        network.load_state_dict(build_network(recipe.start, start).state_dict())
    steps = len(clips) // recipe.batch
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=recipe.lr, weight_decay=recipe.weight_decay
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=recipe.lr, total_steps=steps * recipe.epochs
    )
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{name}.jsonl"
    log.unlink(missing_ok=True)

    def note(**fields: Any) -> None:
        line = json.dumps(fields)
        print(name, line, flush=True)
        with log.open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")

    about = {
        "model": name,
        "seed": seed,
        "dataset": "motion",
        "labels": "motion",
        "generator": GENERATOR_VERSION,
        "torch": torch.__version__.partition("+")[0],
        "recipe": asdict(recipe),
    }
    path = weights / f"{name}.safetensors"
    note(event="start", parameters=sum(p.numel() for p in network.parameters()), **about)
    started = time.process_time()
    for epoch in range(recipe.epochs):
        network.train()
        order = torch.randperm(len(clips), generator=rng)
        total = 0.0
        for step in range(steps):
            picked = order[step * recipe.batch : (step + 1) * recipe.batch]
            x, y = augment(to_float(clips[picked]), labels[picked], recipe, rng)
            progress = (epoch + step / steps) / recipe.epochs
            ramp = min(1.0, progress / recipe.eps_ramp) if recipe.eps_ramp > 0.0 else 1.0
            loss = loss_of(network, x, y, recipe, recipe.eps * ramp / 255.0, rng)
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += float(loss.detach())
        if not math.isfinite(total):
            msg = f"training of {name} diverged in epoch {epoch}"
            raise RuntimeError(msg)
        store(network, name, path, about)
        fields = {
            "epoch": epoch,
            "loss": round(total / steps, 4),
            "val_accuracy": round(accuracy(network, *val), 4),
            "cpu_seconds": round(time.process_time() - started, 1),
        }
        if recipe.eps > 0.0:
            robust = accuracy(network, val[0][:96], val[1][:96], eps=recipe.eps / 255.0)
            fields["val_accuracy_pgd10"] = round(robust, 4)
        note(event="epoch", **fields)
    digest = store(network, name, path, about)
    stored = build_network(name, path.read_bytes())
    note(
        event="stored",
        file=path.name,
        bytes=path.stat().st_size,
        sha256=digest,
        val_accuracy=round(accuracy(stored, *val), 4),
        test_accuracy=round(accuracy(stored, *pooled_split(cache, "test")), 4),
        same_predictions=round(same_predictions(network.eval(), stored, val[0]), 4),
        classes=NUM_CLASSES,
    )


def main() -> None:
    """Train the named models one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", choices=[*RECIPES, "all"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "vcr-motion")
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    parser.add_argument("--logs", type=Path, default=LOGS)
    arguments = parser.parse_args()
    # One thread: tiny operators lose more in synchronisation than they gain.
    torch.set_num_threads(1)
    names = list(RECIPES) if "all" in arguments.models else arguments.models
    for name in names:
        train(
            name, RECIPES[name], arguments.seed, arguments.cache, arguments.weights, arguments.logs
        )


if __name__ == "__main__":
    main()
