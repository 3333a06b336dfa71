"""Training of what is the same for all videos: mini-batches, judging, keeping the best."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import torch
from safetensors import safe_open
from safetensors.torch import save
from vcr_core.atomic import write_bytes, write_json
from vcr_core.randomness import VideoRandom
from vcr_core.seeding import derive_seed

from vcr_attacks.universal import DELTA_FILE, REPORT_FILE, radius_facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor
    from vcr_core.protocols import PrepareContext, TrainingBatch, VideoItem
    from vcr_core.victim import Victim

STATE_FILE = "state.safetensors"

_MEMORY = "memory-"


class TrainingParams(Protocol):
    """Parameters that every training has."""

    @property
    def epochs(self) -> int:
        """Passes over the training videos, at most."""
        ...

    @property
    def batch(self) -> int:
        """Videos of a mini-batch."""
        ...

    @property
    def holdout(self) -> float:
        """Share of the training videos that only choose the best pass."""
        ...

    @property
    def stop_rate(self) -> float | None:
        """Fooling rate at which training ends."""
        ...


@dataclass(slots=True)
class _State:
    """What training has reached; written at the end of every epoch.

    Attributes:
        delta: the variable now.
        best: the best at an end of an epoch so far.
        done: finished ones.
        curve: fooling rate and loss by epoch, of the current target.
        curves: those of finished targets.
        epoch: epochs made for the current target.
    """

    delta: Tensor
    best: Tensor
    done: list[Tensor] = field(default_factory=list)
    curve: list[tuple[float, float]] = field(default_factory=list)
    curves: list[list[tuple[float, float]]] = field(default_factory=list)
    epoch: int = 0


class Training(ABC):
    """Trains one variable for all videos, or one a target class, and keeps the best.

    What the variable is, how it shows in a video and how it moves is a subclass's business.

    Attributes:
        memory: what :meth:`step` remembers of one variable; written with it.
    """

    def __init__(self, params: TrainingParams, ctx: PrepareContext) -> None:
        self._limits = params
        self.memory: dict[str, Tensor] = {}
        self.ctx = ctx
        self.threat = ctx.threat
        held_out = int(params.holdout * len(ctx.items))
        self.items = list(ctx.items[: len(ctx.items) - held_out])
        self.judges = list(ctx.items[len(ctx.items) - held_out :]) or self.items
        self.zero = self.start(ctx.load(self.items[:1])[0].videos)

    @abstractmethod
    def start(self, first: Tensor) -> Tensor:
        """Return the variable before training, given a video ``[1, T, C, H, W]``."""

    @abstractmethod
    def shown(self, variable: Tensor, videos: Tensor, random: VideoRandom) -> Tensor:
        """Return ``videos [b, T, C, H, W]`` with the variable, differentiably."""

    @abstractmethod
    def step(self, variable: Tensor, grad: Tensor) -> Tensor:
        """Return the variable after a mini-batch; may overwrite ``grad``."""

    def penalty(self, variable: Tensor) -> Tensor | None:
        """Return what is added to the loss of every video, if anything."""
        return None

    def loss(self, victim: Victim) -> Callable[[Tensor, Tensor], Tensor]:
        """Return what a video adds to the loss; the goals' cross-entropy unless overridden."""
        return lambda logits, rows: victim.goals.loss(logits, rows)

    def run(self) -> None:
        """Train, or go on, and write the variables with the fooling curves."""
        targets = [None] if self.ctx.targets is None else list(self.ctx.targets)
        state = self._resumed()
        for target in targets[len(state.done) :]:
            self._one(state, target, len(targets))
            state.done.append(state.best)
            state.curves.append(state.curve)
            state.delta, state.best, state.curve = self.zero, self.zero, []
            state.epoch = 0
            self.memory = {}
            self._keep(state)
        # A curve per target, in order: [fooling rate, mean loss] by epoch.
        report = {
            "threat": radius_facts(self.threat),
            "targets": self.ctx.targets if self.ctx.targets is None else list(self.ctx.targets),
            "curves": state.curves,
        }
        self.ctx.facts.update(report)
        write_json(self.ctx.folder / REPORT_FILE, report)
        delta = torch.stack(state.done).cpu().contiguous()
        write_bytes(self.ctx.folder / DELTA_FILE, save({"delta": delta}))
        (self.ctx.folder / STATE_FILE).unlink(missing_ok=True)

    def _one(self, state: _State, target: int | None, targets: int) -> None:
        """Go on with one perturbation until its last epoch."""
        params = self._limits
        items = [item for item in self.items if item.label != target]
        right = self._clean_right(target)
        total = targets * params.epochs * len(self.items)
        before = (len(state.done) * params.epochs + state.epoch) * len(self.items)
        while state.epoch < params.epochs:
            rate = state.curve[-1][0] if state.curve else 0.0
            if params.stop_rate is not None and rate >= params.stop_rate:
                return

            def tick(count: int, start: int = before) -> None:
                self.ctx.progress(min(start + count, total), total)

            state.delta = self.epoch(state.delta, items, target, state.epoch, tick)
            state.epoch += 1
            before += len(self.items)
            reached = self._judged(state.delta, target, right)
            # Later passes win ties: they have seen more.
            if all(_better(reached, earlier) for earlier in state.curve):
                state.best = state.delta
            state.curve.append(reached)
            self._keep(state)

    def epoch(
        self,
        delta: Tensor,
        items: Sequence[VideoItem],
        target: int | None,
        epoch: int,
        tick: Callable[[int], None],
    ) -> Tensor:
        """Return the variable after a pass over ``items`` in mini-batches."""
        seed = derive_seed(self.ctx.seed, f"shuffle:{target}", "prepare", epoch)
        order = torch.randperm(len(items), generator=torch.Generator().manual_seed(seed)).tolist()
        for start in range(0, len(order), self._limits.batch):
            chosen = [items[i] for i in order[start : start + self._limits.batch]]
            total = torch.zeros_like(delta)
            for batch in self.ctx.load(chosen):
                total += self._gradient(delta, batch, target, epoch)
            delta = self.step(delta, total)
            tick(start + len(chosen))
        return delta

    def _gradient(
        self, delta: Tensor, batch: TrainingBatch, target: int | None, epoch: int
    ) -> Tensor:
        """Return the gradient of the summed loss at ``delta``."""
        victim = self.ctx.victim(batch, _targets(target, batch), repeat=epoch)
        leaf = delta.detach().requires_grad_()
        with torch.enable_grad():
            point = self.shown(leaf, batch.videos, self._draws(batch, f"epoch-{epoch}"))
            outer = victim.loss_and_grad(point.detach(), loss=self.loss(victim)).grad
            value = (point * outer).sum()
            extra = self.penalty(leaf)
            if extra is not None:
                value = value + len(batch.ids) * extra
            (found,) = torch.autograd.grad(value, leaf)
        return found

    def _draws(self, batch: TrainingBatch, when: str) -> VideoRandom:
        seeds = [derive_seed(self.ctx.seed, video, "prepare", when) for video in batch.ids]
        return VideoRandom(seeds, batch.videos.device)

    def _clean_right(self, target: int | None) -> dict[str, bool]:
        """Return which of the judging videos the model gets right without a perturbation."""
        found: dict[str, bool] = {}
        for batch in self.ctx.load(self._judges(target)):
            predicted = self.ctx.victim(batch).scores(batch.videos).argmax(dim=1)
            found.update(zip(batch.ids, (predicted == batch.labels).tolist(), strict=True))
        return found

    def _judged(
        self, delta: Tensor, target: int | None, right: dict[str, bool]
    ) -> tuple[float, float]:
        """Return the fooling rate among videos classified rightly, and the mean loss of all."""
        fooled: list[bool] = []
        losses: list[float] = []
        judges = self._judges(target)
        for start in range(0, len(judges), self._limits.batch):
            for batch in self.ctx.load(judges[start : start + self._limits.batch]):
                victim = self.ctx.victim(batch, _targets(target, batch))
                logits = victim.scores(self.shown(delta, batch.videos, self._draws(batch, "judge")))
                losses += self.loss(victim)(logits, torch.arange(len(batch.ids))).tolist()
                achieved = victim.goals.achieved(logits).tolist()
                fooled += [a for i, a in zip(batch.ids, achieved, strict=True) if right[i]]
        rate = sum(fooled) / len(fooled) if fooled else 0.0
        return rate, sum(losses) / max(1, len(losses))

    def _judges(self, target: int | None) -> list[VideoItem]:
        return [item for item in self.judges if item.label != target]

    def _keep(self, state: _State) -> None:
        tensors = {"delta": state.delta, "best": state.best}
        tensors |= {f"done-{i}": delta for i, delta in enumerate(state.done)}
        tensors |= {_MEMORY + name: tensor for name, tensor in self.memory.items()}
        told = {"curve": state.curve, "curves": state.curves, "epoch": state.epoch}
        kept = {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}
        data = save(kept, {"told": _text(told)})
        write_bytes(self.ctx.folder / STATE_FILE, data)

    def _resumed(self) -> _State:
        path = self.ctx.folder / STATE_FILE
        if not path.exists():
            return _State(self.zero, self.zero)
        with safe_open(path, framework="pt") as file:
            told = json.loads(file.metadata()["told"])
            tensors = {key: file.get_tensor(key).to(self.zero) for key in file.keys()}  # noqa: SIM118
        self.memory = {
            key.removeprefix(_MEMORY): tensor
            for key, tensor in tensors.items()
            if key.startswith(_MEMORY)
        }
        return _State(
            delta=tensors["delta"],
            best=tensors["best"],
            done=[tensors[f"done-{i}"] for i in range(len(told["curves"]))],
            curve=[tuple(pair) for pair in told["curve"]],
            curves=told["curves"],
            epoch=told["epoch"],
        )


def _better(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return (one[0], -one[1]) >= (other[0], -other[1])


def _targets(target: int | None, batch: TrainingBatch) -> Tensor | None:
    return None if target is None else torch.full_like(batch.labels, target)


def _text(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"))
