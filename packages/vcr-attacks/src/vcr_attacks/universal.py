"""Training of universal perturbations: placing, sign steps, DeepFool steps, keeping the best."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch.nn.functional import interpolate
from vcr_core.atomic import write_bytes, write_json
from vcr_core.errors import IncompatibleComponents
from vcr_core.seeding import derive_seed

from vcr_attacks.deepfool_step import nearest_boundary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor
    from vcr_core.protocols import PrepareContext, TrainingBatch, VideoItem
    from vcr_core.threat import ThreatModel
    from vcr_core.victim import Victim

    from vcr_attacks.params.prepared import UapParams

DELTA_FILE = "delta.safetensors"
REPORT_FILE = "training.json"
STATE_FILE = "state.safetensors"


def place(delta: Tensor, frames: int, size: tuple[int, int]) -> Tensor:
    """Return perturbations for videos of other shapes; no value grows.

    Args:
        delta: ``[N, T0, C, H0, W0]``.
        frames: ``T``; a longer video repeats the perturbation, a shorter one takes its beginning.
        size: ``H, W``; frames are resized bilinearly, each value a mean of its neighbours.

    Returns:
        ``[N, T, C, H, W]``, differentiable.
    """
    if delta.shape[1] != frames:
        delta = delta[:, torch.arange(frames, device=delta.device) % delta.shape[1]]
    if tuple(delta.shape[-2:]) == tuple(size):
        return delta
    flat = interpolate(delta.flatten(0, 1), size=size, mode="bilinear", align_corners=False)
    return flat.view(*delta.shape[:3], *size)


def radius_facts(threat: ThreatModel) -> dict[str, Any]:
    """Return what a perturbation was made for, as plain data."""
    eps = threat.eps if isinstance(threat.eps, float | int) else threat.eps.tolist()
    if threat.per_frame_eps is not None:
        return {"per_frame_eps": list(threat.per_frame_eps)}
    return {"eps": eps}


def train(params: UapParams, ctx: PrepareContext) -> None:
    """Train a perturbation, or one a target class, and write them with the fooling curves.

    Raises:
        IncompatibleComponents: for a targeted run with ``algorithm = "deepfool"``.
    """
    if params.algorithm == "deepfool" and ctx.targets is not None:
        raise IncompatibleComponents(
            "uap with attack.algorithm = 'deepfool' is untargeted; use 'sgd' or "
            "threat.targeted = false"
        )
    _Training(params, ctx).run()


@dataclass(slots=True)
class _State:
    """What training has reached; written at the end of every epoch.

    Attributes:
        delta: ``[T, C, H, W]`` now.
        best: the best at an end of an epoch so far.
        done: finished perturbations.
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


class _Training:
    def __init__(self, params: UapParams, ctx: PrepareContext) -> None:
        self.params = params
        self.ctx = ctx
        self.threat = ctx.threat
        held_out = int(params.holdout * len(ctx.items))
        self.items = list(ctx.items[: len(ctx.items) - held_out])
        self.judges = list(ctx.items[len(ctx.items) - held_out :]) or self.items
        first = ctx.load(self.items[:1])[0].videos
        side = ctx.model.clip.size
        self.zero = first.new_zeros(first.shape[1], first.shape[2], side, side)
        self.radius = self.threat.radius(first)[0]
        self.steps = 0

    def run(self) -> None:
        targets = [None] if self.ctx.targets is None else list(self.ctx.targets)
        state = self._resumed()
        for target in targets[len(state.done) :]:
            self._one(state, target, len(targets))
            state.done.append(state.best)
            state.curves.append(state.curve)
            state.delta, state.best, state.curve = self.zero, self.zero, []
            state.epoch = 0
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
        params = self.params
        items = [item for item in self.items if item.label != target]
        right = self._clean_right(target)
        make = self._sgd_epoch if params.algorithm == "sgd" else self._deepfool_epoch
        total = targets * params.epochs * len(self.items)
        before = (len(state.done) * params.epochs + state.epoch) * len(self.items)
        while state.epoch < params.epochs:
            rate = state.curve[-1][0] if state.curve else 0.0
            if params.stop_rate is not None and rate >= params.stop_rate:
                return

            def tick(count: int, start: int = before) -> None:
                self.ctx.progress(min(start + count, total), total)

            state.delta = make(state.delta, items, target, state.epoch, tick)
            state.epoch += 1
            before += len(self.items)
            reached = self._judged(state.delta, target, right)
            # Later passes win ties: they have seen more.
            if all(_better(reached, earlier) for earlier in state.curve):
                state.best = state.delta
            state.curve.append(reached)
            self._keep(state)

    def _sgd_epoch(
        self,
        delta: Tensor,
        items: Sequence[VideoItem],
        target: int | None,
        epoch: int,
        tick: Callable[[int], None],
    ) -> Tensor:
        seed = derive_seed(self.ctx.seed, f"shuffle:{target}", "prepare", epoch)
        order = torch.randperm(len(items), generator=torch.Generator().manual_seed(seed)).tolist()
        for start in range(0, len(order), self.params.batch):
            chosen = [items[i] for i in order[start : start + self.params.batch]]
            total = torch.zeros_like(delta)
            for batch in self.ctx.load(chosen):
                total += self._gradient(delta, batch, target, epoch)
            delta = self._clamped(delta - self.params.step * total.sign())
            tick(start + len(chosen))
        return delta

    def _gradient(
        self, delta: Tensor, batch: TrainingBatch, target: int | None, epoch: int
    ) -> Tensor:
        """Return the gradient of the summed loss at ``delta``."""
        victim = self.ctx.victim(batch, _targets(target, batch), repeat=epoch)
        leaf = delta.detach().requires_grad_()
        with torch.enable_grad():
            point = self._applied(leaf, batch.videos)
            grad = victim.loss_and_grad(point.detach(), loss=self._loss(victim)).grad
            (found,) = torch.autograd.grad(point, leaf, grad)
        return found

    def _loss(self, victim: Victim) -> Callable[[Tensor, Tensor], Tensor]:
        """Return the goals' cross-entropy, clipped for videos that are fooled well already."""
        goals, bound = victim.goals, -self.params.clip

        def loss(logits: Tensor, rows: Tensor) -> Tensor:
            value = goals.loss(logits, rows)
            return value if goals.targeted else value.clamp_min(bound)

        return loss

    def _deepfool_epoch(
        self,
        delta: Tensor,
        items: Sequence[VideoItem],
        _target: int | None,
        epoch: int,
        tick: Callable[[int], None],
    ) -> Tensor:
        for count, item in enumerate(items, start=1):
            (batch,) = self.ctx.load([item])
            victim = self.ctx.victim(batch, repeat=epoch)
            clean = victim.scores(batch.videos).argmax(dim=1)
            point = self._applied(delta, batch.videos)
            if torch.equal(victim.scores(point).argmax(dim=1), clean):
                move = nearest_boundary(
                    victim,
                    point,
                    int(clean),
                    candidates=self.params.candidates,
                    overshoot=self.params.overshoot,
                    steps=self.params.inner_steps,
                )
                if move is not None:
                    delta = self._clamped(delta + self._taken_back(move))
            tick(count)
        return delta

    def _taken_back(self, move: Tensor) -> Tensor:
        """Return a video's move ``[T, C, H, W]`` in the shape of the perturbation."""
        frames, size = self.zero.shape[0], (self.zero.shape[2], self.zero.shape[3])
        taken = torch.zeros_like(self.zero)
        resized = place(move.unsqueeze(0), move.shape[0], size)[0]
        count = min(frames, len(resized))
        taken[:count] = resized[:count]
        return taken

    def _applied(self, delta: Tensor, videos: Tensor) -> Tensor:
        placed = place(delta.unsqueeze(0), videos.shape[1], (videos.shape[3], videos.shape[4]))
        mask = self.threat.mask(videos)
        return (videos + (placed if mask is None else mask * placed)).clamp(0, 1)

    def _clamped(self, delta: Tensor) -> Tensor:
        return torch.minimum(torch.maximum(delta, -self.radius), self.radius)

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
        for start in range(0, len(judges), self.params.batch):
            for batch in self.ctx.load(judges[start : start + self.params.batch]):
                victim = self.ctx.victim(batch, _targets(target, batch))
                logits = victim.scores(self._applied(delta, batch.videos))
                losses += self._loss(victim)(logits, torch.arange(len(batch.ids))).tolist()
                achieved = victim.goals.achieved(logits).tolist()
                fooled += [a for i, a in zip(batch.ids, achieved, strict=True) if right[i]]
        rate = sum(fooled) / len(fooled) if fooled else 0.0
        return rate, sum(losses) / max(1, len(losses))

    def _judges(self, target: int | None) -> list[VideoItem]:
        return [item for item in self.judges if item.label != target]

    def _keep(self, state: _State) -> None:
        tensors = {"delta": state.delta, "best": state.best}
        tensors |= {f"done-{i}": delta for i, delta in enumerate(state.done)}
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
