"""A small contest between an attack and a toy model, set up as the engine sets it up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from vcr_core.accounts import Meter
from vcr_core.adaptive import DefenseLink, View
from vcr_core.errors import BudgetExhausted
from vcr_core.goals import Goals
from vcr_core.image_models import CountedImageModel, ImageModel
from vcr_core.metering import GuardedModel
from vcr_core.protocols import AttackContext, LabelSpace
from vcr_core.randomness import VideoRandom
from vcr_core.seeding import derive_seed
from vcr_core.specs import ClipSpec
from vcr_core.threat import Linf, ThreatModel, Unbounded
from vcr_core.victim import Rules, Victim


class Linear:
    """Logits ``[0, <w_1, x> + b_1, …]``: the optimal attack is known in closed form."""

    def __init__(self, weights: Tensor, bias: Sequence[float] | None = None) -> None:
        self.weights = weights  # [K - 1, T, C, H, W]
        self.bias = torch.tensor(bias or [0.0] * len(weights))
        self.labels = LabelSpace("linear", tuple(str(k) for k in range(len(weights) + 1)))
        self.clip = ClipSpec(frames=weights.shape[1])

    def logits(self, clips: Tensor) -> Tensor:
        # Sums, not a matrix product: a row's bits must not depend on the batch.
        scores = [(clips * w).flatten(1).sum(1) + b
                  for w, b in zip(self.weights, self.bias, strict=True)]  # fmt: skip
        return torch.stack([torch.zeros_like(scores[0]), *scores], dim=1).unsqueeze(1)


class TinyConv3d(nn.Module):
    """Two 3-D convolutions and a pool, with fixed random weights."""

    def __init__(self, classes: int = 5, seed: int = 0, gain: float = 0.7) -> None:
        super().__init__()
        self.labels = LabelSpace("tiny", tuple(str(k) for k in range(classes)))
        self.clip = ClipSpec(frames=3)
        self.first = nn.Conv3d(3, 6, 3, padding=1)
        self.second = nn.Conv3d(6, classes, (1, 3, 3), stride=(1, 2, 2))
        self.gain = gain
        generator = torch.Generator().manual_seed(seed)
        for parameter in self.parameters():
            fan = parameter[0].numel() if parameter.ndim > 1 else 10
            parameter.data = torch.randn(parameter.shape, generator=generator) / fan**0.5
        self.requires_grad_(requires_grad=False).eval()

    def logits(self, clips: Tensor) -> Tensor:
        hidden = nn.functional.gelu(self.first(clips.transpose(1, 2) * 4 - 2))
        scores = self.second(hidden)
        return self.gain * (scores.square().mean((2, 3, 4)) + scores.mean((2, 3, 4))).unsqueeze(1)


@dataclass
class Outcome:
    """What an attack left behind."""

    result: Tensor
    victim: Victim
    points: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    surrogates: dict[str, Victim] = field(default_factory=dict)
    images: list[Meter] = field(default_factory=list)

    def predict(self, videos: Tensor) -> Tensor:
        view = self.victim._view
        with torch.no_grad():
            return view(videos, VideoRandom([0] * len(videos)))


def _contest(
    attack: object,
    model: object,
    clean: Tensor,
    labels: Sequence[int],
    *,
    targets: Sequence[int] | None = None,
    threat: ThreatModel | None = None,
    access: str = "white-box",
    stop: str = "budget",
    views: int = 1,
    max_forwards: int | None = None,
    ids: Sequence[str] | None = None,
    seed: int = 1,
    links: Sequence[DefenseLink] = (),
    folder: Path | None = None,
    surrogates: dict[str, object] | None = None,
    images: dict[str, ImageModel] | None = None,
) -> Outcome:
    threat = threat or Linf("8/255", quantize=False)
    ids = ids or [f"video-{i}" for i in range(len(clean))]
    goals = Goals(torch.tensor(labels), None if targets is None else torch.tensor(targets))
    guarded = GuardedModel(model)
    gather = torch.arange(clean.shape[1]).repeat(views, 1)
    victim = Victim(
        View(guarded, gather, links),
        clean,
        goals,
        threat,
        ids=ids,
        seed=seed,
        rules=Rules(access=access, stop=stop, max_forwards=max_forwards),
    )
    outcome = Outcome(clean, victim, images=[Meter() for _ in ids])
    ask = {name: getattr(victim, name) for name in ("scores", "loss_and_grad")}

    def recorded(name: str) -> Callable[..., object]:
        def query(
            video: Tensor, rows: Tensor | None = None, *rest: object, **options: object
        ) -> object:
            chosen = torch.arange(len(clean)) if rows is None else rows
            outcome.points.append((chosen.clone(), video.clone()))
            return ask[name](video, rows, *rest, **options)

        return query

    for name in ask:
        setattr(victim, name, recorded(name))
    random = VideoRandom([derive_seed(seed, i, "attack") for i in ids])
    helpers = {
        name: Victim(
            View(stand_in, gather), clean, goals, Unbounded(quantize=False), ids=ids, seed=seed,
            rules=Rules(access="white-box", stop="budget"),
        )
        for name, stand_in in (surrogates or {}).items()
    }  # fmt: skip
    outcome.surrogates = helpers
    context = AttackContext(
        threat, random, ids, folder=folder, surrogates=helpers.__getitem__ if helpers else None,
        image_models=lambda name: CountedImageModel((images or {})[name], outcome.images),
    )  # fmt: skip
    kept, ambient = clean.clone(), torch.get_rng_state()
    with guarded.watch():
        try:
            outcome.result = attack.attack(victim, clean, goals, context)
        except BudgetExhausted:
            outcome.result = victim.best()
    assert guarded.unmetered == 0
    assert torch.equal(clean, kept)
    assert torch.equal(torch.get_rng_state(), ambient)
    assert not outcome.result.requires_grad
    return outcome


@pytest.fixture
def contest() -> Callable[..., Outcome]:
    """Return a function that runs an attack and checks what every attack has to keep."""
    return _contest


@pytest.fixture
def linear() -> type[Linear]:
    return Linear


@pytest.fixture
def tiny() -> TinyConv3d:
    return TinyConv3d()


@pytest.fixture
def videos() -> Callable[..., Tensor]:
    """Return a maker of random videos on the 8-bit grid, away from black and white."""

    def make(*shape: int, seed: int = 0) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.randint(40, 216, shape, generator=generator).float() / 255

    return make


@pytest.fixture
def labels_of() -> Callable[[object, Tensor], list[int]]:
    """Return a function that gives a model's own predictions."""

    def predict(model: object, clean: Tensor) -> list[int]:
        with torch.no_grad():
            return model.logits(clean).mean(1).argmax(1).tolist()

    return predict
