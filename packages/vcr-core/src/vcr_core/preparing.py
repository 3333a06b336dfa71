"""What an offline step works with where the engine gives it nothing else: the bare model."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import nll_loss

from vcr_core.accounts import Meter
from vcr_core.adaptive import View
from vcr_core.errors import ContractViolation
from vcr_core.goals import Goals
from vcr_core.metering import GuardedModel
from vcr_core.protocols import TrainingBatch
from vcr_core.randomness import VideoRandom
from vcr_core.seeding import derive_seed
from vcr_core.victim import Rules, Victim
from vcr_core.video.sampling import make_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from vcr_core.adaptive import DefenseLink
    from vcr_core.protocols import VideoClassifier, VideoItem
    from vcr_core.specs import ClipSpec
    from vcr_core.threat import ThreatModel


def load_items(
    spec: ClipSpec, device: torch.device | str
) -> Callable[[Sequence[VideoItem]], list[TrainingBatch]]:
    """Return a loader that samples as a model's clip specification says, with few clips."""

    def load(items: Sequence[VideoItem]) -> list[TrainingBatch]:
        return stacked([_read(item, spec) for item in items], device)

    return load


def stacked(
    videos: Sequence[tuple[str, int, Tensor, Tensor]], device: torch.device | str
) -> list[TrainingBatch]:
    """Return batches of equal shape and gather, in order of first appearance.

    Args:
        videos: id, label, frames ``[T, C, H, W]`` and gather ``[V, T']`` of each.
        device: where to put them.
    """
    groups: dict[tuple[object, ...], list[tuple[str, int, Tensor, Tensor]]] = {}
    for video in videos:
        _, _, frames, gather = video
        key = (tuple(frames.shape), tuple(gather.shape), tuple(gather.flatten().tolist()))
        groups.setdefault(key, []).append(video)
    return [
        TrainingBatch(
            ids=tuple(video[0] for video in group),
            videos=torch.stack([video[2] for video in group]).to(device),
            labels=torch.tensor([video[1] for video in group], device=device),
            gather=group[0][3].to(device),
        )
        for group in groups.values()
    ]


def plain_victim(
    model: VideoClassifier,
    threat: ThreatModel,
    seed: int,
    *,
    links: Sequence[DefenseLink] = (),
    gradient: str = "auto",
    eot: int = 1,
    chunk: int | None = None,
) -> Callable[[TrainingBatch, Tensor | None, int], Victim]:
    """Return a maker of victims that are white boxes, never stop early and have no budget.

    Args:
        model: the classifier.
        threat: says how queries are rounded.
        seed: what the draws of random defenses depend on, beside video and round.
        links: defenses that the attacker sees.
        gradient: what it gets through them.
        eot: draws over which gradients are averaged.
        chunk: clips that pass the model at once.
    """

    def make(batch: TrainingBatch, targets: Tensor | None, repeat: int) -> Victim:
        if model.clip.frames != batch.gather.shape[1]:
            raise ContractViolation(
                f"the videos were read as clips of {batch.gather.shape[1]} frames, and a model "
                f"takes {model.clip.frames}"
            )
        return Victim(
            View(model, batch.gather, links, chunk=chunk, gradient=gradient),
            batch.videos,
            Goals(batch.labels, targets),
            threat,
            ids=batch.ids,
            seed=derive_seed(seed, "", "prepare", repeat),
            rules=Rules(access="white-box", stop="budget", eot=eot),
            role="prepare",
        )

    return make


class Bare:
    """The undefended model as a function of clips, for offline steps of defenses.

    Unlike a victim it knows no threat model: clips may be any.

    Args:
        model: the classifier.
        chunk: clips that pass the model at once.
        refusal: why it must not be asked, ``""`` if it may be.
    """

    def __init__(
        self, model: VideoClassifier, chunk: int | None = None, *, refusal: str = ""
    ) -> None:
        self._model = model
        self._chunk = chunk
        self._refusal = refusal

    def scores(self, clips: Tensor, meters: list[Meter]) -> Tensor:
        """Return log-probabilities ``[B, K]`` of clips ``[B, V, T', C, H, W]``."""
        with torch.no_grad(), self._permit():
            found = self._ask(clips)
        meters.extend(Meter(forwards=1) for _ in range(len(clips)))
        return found

    def loss_and_grad(
        self, clips: Tensor, labels: Tensor, meters: list[Meter]
    ) -> tuple[Tensor, Tensor]:
        """Return the cross-entropy ``[B]`` with labels ``[B]`` and its gradient."""
        with torch.enable_grad(), self._permit():
            point = clips.detach().requires_grad_()
            loss = nll_loss(self._ask(point), labels, reduction="none")
            (grad,) = torch.autograd.grad(loss.sum(), point)
        meters.extend(Meter(forwards=1, backwards=1) for _ in range(len(clips)))
        return loss.detach(), grad

    def _ask(self, clips: Tensor) -> Tensor:
        order = torch.arange(clips.shape[1] * clips.shape[2], device=clips.device)
        view = View(self._model, order.view(clips.shape[1:3]), chunk=self._chunk)
        return view(clips.flatten(1, 2), VideoRandom([0] * len(clips)))

    def _permit(self) -> AbstractContextManager[None]:
        if self._refusal:
            raise ContractViolation(self._refusal)
        return self._model.permit() if isinstance(self._model, GuardedModel) else nullcontext()


def _read(item: VideoItem, spec: ClipSpec) -> tuple[str, int, Tensor, Tensor]:
    clip = item.source.read(
        lambda count: make_plan(
            count,
            frames=spec.frames,
            stride=spec.stride,
            clips=spec.light_clips,
            policy=spec.policy,
            end=spec.end,
        )
    )
    frames = torch.from_numpy(clip.frames).permute(0, 3, 1, 2).to(torch.float32).div_(255)
    gather = torch.as_tensor(clip.plan.gather, dtype=torch.int64)
    return item.id, item.label, frames.contiguous(), gather
