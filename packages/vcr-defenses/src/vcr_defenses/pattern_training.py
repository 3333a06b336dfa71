"""Learning a defense pattern on a frozen model."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import torch
from safetensors.torch import load_file, save_file
from vcr_core.errors import IncompatibleComponents
from vcr_core.randomness import VideoRandom
from vcr_core.seeding import derive_seed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from torch import Tensor
    from vcr_core.protocols import PrepareContext

    from vcr_defenses.params.learned import DefensePatternsParams

PATTERN_FILE = "pattern.safetensors"
REPORT_FILE = "training.json"
STATE_FILE = "unfinished.safetensors"

_BETAS, _TINY = (0.9, 0.999), 1e-8


def train(params: DefensePatternsParams, ctx: PrepareContext) -> None:
    """Learn ``P`` and write it to ``ctx.folder``; resumable at ends of epochs.

    Minimises ``E[CE(g(x), y) + weight · CE(g(x'), y)]`` with ``g(x) = f(clamp(x + P))`` over
    ``|P| <= eps``. ``x'`` is the result of projected sign steps against ``g`` inside the run's
    radius (Madry et al., ICLR 2018), made anew for every step on ``P``. Adam (Kingma & Ba, ICLR
    2015) with step size ``rate · eps``; ``P`` is clamped to its radius after every step.

    Args:
        params: sizes and lengths.
        ctx: training videos, which must have one shape; the threat model, of norm ``linf``.

    Raises:
        IncompatibleComponents: for another norm, or videos of different shapes.
    """
    if (ctx.folder / PATTERN_FILE).exists():
        return
    if ctx.threat.norm != "linf":
        raise IncompatibleComponents(
            f"defense-patterns is learned against norm 'linf', and the run has {ctx.threat.norm!r}"
        )
    loaded = ctx.load(ctx.items)
    shapes = {tuple(batch.videos.shape[2:]) for batch in loaded}
    if len(shapes) > 1:
        raise IncompatibleComponents(
            f"defense-patterns needs training videos of one size, found {sorted(shapes)}"
        )
    ids = [video for batch in loaded for video in batch.ids]
    clips = torch.cat([batch.videos[:, batch.gather] for batch in loaded])
    labels = torch.cat([batch.labels for batch in loaded])
    learner = _Learner(params, ctx, clips.shape[2:])
    batches = math.ceil(len(ids) / params.batch)
    for epoch in range(len(learner.losses), params.epochs):
        total = 0.0
        for number, rows in enumerate(_batches(len(ids), params.batch, ctx.seed, epoch)):
            random = VideoRandom(
                [derive_seed(ctx.seed, ids[r], "prepare", epoch) for r in rows.tolist()], ctx.device
            )
            total += learner.step(clips[rows], labels[rows], random) * len(rows)
            ctx.progress(epoch * batches + number + 1, params.epochs * batches)
        learner.losses.append(total / len(ids))
        learner.keep()
    learner.finish()
    ctx.facts.update(loss_first=learner.losses[0], loss_last=learner.losses[-1])


def read_pattern(folder: Path) -> Tensor:
    """Return the pattern ``[T', C, H, W]`` of an artifact."""
    return load_file(folder / PATTERN_FILE)["pattern"]


class _Learner:
    """The pattern, the state of the optimiser, and both on disk."""

    def __init__(self, params: DefensePatternsParams, ctx: PrepareContext, shape: torch.Size):
        self.params = params
        self.ctx = ctx
        self.losses: list[float] = []
        state = ctx.folder / STATE_FILE
        if state.exists():
            kept = load_file(state)
            self.losses = kept["losses"].tolist()
            self.steps = int(kept["steps"])
            self.pattern, self.mean, self.square = (
                kept[k].to(ctx.device) for k in ("pattern", "mean", "square")
            )
        else:
            self.steps = 0
            self.pattern, self.mean, self.square = (
                torch.zeros(shape, device=ctx.device) for _ in range(3)
            )

    def step(self, clips: Tensor, labels: Tensor, random: VideoRandom) -> float:
        """Take one step on the pattern and return the mean loss before it."""
        clean, clean_grad = self._gradient(clips, labels)
        attacked = self._attacked(clips, labels, random)
        lost, lost_grad = self._gradient(attacked, labels)
        grad = (clean_grad + self.params.weight * lost_grad).sum(dim=1).mean(dim=0)
        self.steps += 1
        self.mean.lerp_(grad, 1 - _BETAS[0])
        self.square.lerp_(grad.square(), 1 - _BETAS[1])
        mean = self.mean / (1 - _BETAS[0] ** self.steps)
        square = self.square / (1 - _BETAS[1] ** self.steps)
        eps = self.params.eps
        self.pattern -= self.params.rate * eps * mean / (square.sqrt() + _TINY)
        self.pattern.clamp_(-eps, eps)
        return float((clean + self.params.weight * lost).mean())

    def keep(self) -> None:
        """Write what the next call needs to go on."""
        state = {
            "pattern": self.pattern.cpu(),
            "mean": self.mean.cpu(),
            "square": self.square.cpu(),
            "steps": torch.tensor(self.steps),
            "losses": torch.tensor(self.losses, dtype=torch.float64),
        }
        partial = self.ctx.folder / (STATE_FILE + ".partial")
        save_file(state, partial)
        partial.replace(self.ctx.folder / STATE_FILE)

    def finish(self) -> None:
        """Write the pattern and the losses, and remove what is no longer needed."""
        report = json.dumps({"losses": self.losses}, indent=1)
        (self.ctx.folder / REPORT_FILE).write_text(report, encoding="utf-8")
        partial = self.ctx.folder / (PATTERN_FILE + ".partial")
        save_file({"pattern": self.pattern.cpu()}, partial)
        partial.replace(self.ctx.folder / PATTERN_FILE)
        (self.ctx.folder / STATE_FILE).unlink(missing_ok=True)

    def _gradient(self, clips: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return loss ``[B]`` and gradient with respect to the clips, through pattern and clamp."""
        moved = clips + self.pattern
        loss, grad = self.ctx.loss_and_grad(moved.clamp(0, 1), labels)
        return loss, grad * ((moved >= 0) & (moved <= 1))

    def _attacked(self, clips: Tensor, labels: Tensor, random: VideoRandom) -> Tensor:
        eps, steps = float(self.ctx.threat.eps), self.params.attack_steps
        noise = random.uniform(*clips.shape[1:], low=-eps, high=eps).to(clips)
        point = (clips + noise).clamp(0, 1)
        for _ in range(steps):
            _, grad = self._gradient(point, labels)
            point = point + (2.5 * eps / steps) * grad.sign()
            point = torch.minimum(torch.maximum(point, clips - eps), clips + eps).clamp(0, 1)
        return point


def _batches(count: int, size: int, seed: int, epoch: int) -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(derive_seed(seed, "", "prepare", epoch))
    yield from torch.split(torch.randperm(count, generator=generator), size)
