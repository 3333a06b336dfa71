"""A small contest between an attack and a toy model, set up as the engine sets it up."""

from __future__ import annotations

import hashlib
import unittest
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from vcr_core.accounts import Meter
from vcr_core.adaptive import View
from vcr_core.errors import BudgetExhausted
from vcr_core.goals import Goals
from vcr_core.image_models import CountedImageModel
from vcr_core.metering import GuardedModel
from vcr_core.protocols import Attack, AttackContext, VideoClassifier
from vcr_core.randomness import VideoRandom
from vcr_core.seeding import derive_seed, isolated_random_state
from vcr_core.specs import AttackSpec
from vcr_core.testing.checks.inputs import video
from vcr_core.testing.contract import Subject
from vcr_core.testing.toys.images import toy_image_model
from vcr_core.testing.toys.linear import LinearClassifier
from vcr_core.threat import Norm, ThreatModel, Unbounded
from vcr_core.victim import Rules, Victim

LEVELS = 2
"""Contrast of the linear model's videos; the least radius follows from it."""

_SURROGATE_IDS = "surrogate:"


@dataclass(frozen=True)
class Contest:
    """Everything that decides an attack's result.

    Attributes:
        clean: ``[B, T, C, H, W]``.
        labels: true labels, one a video.
        targets: target labels, or ``None``.
        threat: the threat model.
        model: the model under attack; also stands in for any surrogate.
        ids: video ids; random draws depend on them.
        seed: run seed.
        views: clips that the view gathers.
        stop: stop rule.
        max_forwards: budget of forward passes.
        folder: prepared artifacts.
    """

    clean: Tensor
    labels: tuple[int, ...]
    threat: ThreatModel
    model: VideoClassifier = field(default_factory=LinearClassifier)
    targets: tuple[int, ...] | None = None
    ids: tuple[str, ...] = ()
    seed: int = 1
    views: int = 1
    stop: str = "first_success"
    max_forwards: int | None = None
    folder: Path | None = None

    def run(self, attack: Attack, spec: AttackSpec) -> Outcome:
        """Return what the attack leaves; nothing is projected or rounded afterwards."""
        guarded = GuardedModel(self.model)
        ids = self.ids or tuple(f"video-{i}" for i in range(len(self.labels)))
        goals = Goals(
            torch.tensor(self.labels),
            None if self.targets is None else torch.tensor(self.targets),
        )
        victim = self._victim(guarded, goals, ids, spec.access)
        helpers: list[Victim] = []
        images = [Meter() for _ in ids]

        def surrogate(name: str) -> Victim:
            stand_in = self._victim(
                GuardedModel(self.model),
                goals,
                tuple(_SURROGATE_IDS + i for i in ids),
                "white-box",
                Unbounded(quantize=False),
            )
            stand_in.rules = replace(stand_in.rules, stop="budget", max_forwards=None)
            helpers.append(stand_in)
            return stand_in

        context = AttackContext(
            threat=self.threat,
            random=VideoRandom([derive_seed(self.seed, i, "attack") for i in ids]),
            ids=ids,
            surrogates=surrogate if spec.access == "transfer" else None,
            # One toy stands in for every image network.
            image_models=lambda _name: CountedImageModel(toy_image_model(), images),
            folder=self.folder,
        )
        first = self.clean.clone()
        with guarded.watch(), isolated_random_state(derive_seed(self.seed, ids[0], "attack")):
            try:
                result = attack.attack(victim, self.clean, goals, context)
            except BudgetExhausted:
                result = victim.best()
        return Outcome(self, result, victim, guarded.unmetered, not torch.equal(first, self.clean))

    def predict(self, videos: Tensor) -> Tensor:
        """Return ``[B, K]`` log-probabilities of the model on ``videos``."""
        view = View(self.model, self._gather())
        with torch.no_grad():
            return view(videos, VideoRandom([0] * len(videos)))

    def _gather(self) -> Tensor:
        return torch.arange(self.clean.shape[1]).repeat(self.views, 1)

    def _victim(
        self,
        model: GuardedModel,
        goals: Goals,
        ids: tuple[str, ...],
        access: Any,
        threat: ThreatModel | None = None,
    ) -> Victim:
        rules = Rules(access=access, stop=cast(Any, self.stop), max_forwards=self.max_forwards)
        view = View(cast(VideoClassifier, model), self._gather())
        return Victim(
            view, self.clean, goals, threat or self.threat, ids=ids, seed=self.seed, rules=rules
        )


@dataclass(frozen=True)
class Outcome:
    """What an attack left.

    Attributes:
        contest: what it was asked.
        result: what it returned.
        victim: the metered model.
        unmetered: forward passes that went around the victim.
        changed_input: whether the clean tensor is another one now.
    """

    contest: Contest
    result: Tensor
    victim: Victim
    unmetered: int
    changed_input: bool


def spec_of(subject: Subject) -> AttackSpec:
    """Return the attack's spec.

    Raises:
        unittest.SkipTest: for an attack that works before or on the sampling, not on frames.
    """
    spec = cast(AttackSpec, subject.spec)
    if spec.access == "none" and spec.stage != "frames":
        raise unittest.SkipTest(f"attack/{spec.name} works on stage {spec.stage!r}, not on frames")
    return spec


def threat_for(norm: str, times: float = 4.0) -> ThreatModel:
    """Return a threat ``times`` the least radius at which the linear model falls."""
    if norm == "none":
        return ThreatModel(norm="none", eps=0.0)
    radius = times * LinearClassifier().least_radius(norm, LEVELS)
    return ThreatModel(norm=cast(Norm, norm), eps=min(radius, 1.0) if norm == "l0" else radius)


def norms_of(spec: AttackSpec) -> list[str]:
    """Return the declared norms, those with a radius first."""
    return sorted(spec.norms, key=lambda norm: (norm == "none", norm))


def linear_contest(spec: AttackSpec, norm: str, times: float = 4.0, **changes: Any) -> Contest:
    """Return a contest of three linear videos, untargeted if the attack can, in that norm."""
    model = LinearClassifier()
    labels = (0, 1, 2)
    clean = torch.stack([model.video(y, LEVELS) for y in labels])
    targets = None if spec.untargeted else (1, 2, 3)
    return replace(
        Contest(clean, labels, threat_for(norm, times), model=model, targets=targets), **changes
    )


def texture_contest(spec: AttackSpec, **changes: Any) -> Contest:
    """Return a contest on one odd, oblong, textured video, labelled as the model sees it."""
    clean = changes.pop("clean", video(4, 1, 5, 33, 50))
    base = Contest(clean, (0,) * len(clean), threat_for(norms_of(spec)[0]), **changes)
    labels = tuple(base.predict(clean).argmax(dim=1).tolist())
    targets = None if spec.untargeted else tuple((y + 1) % 4 for y in labels)
    return replace(base, labels=labels, targets=targets)


def build(subject: Subject) -> Attack:
    """Return a new instance of the attack."""
    return cast(Attack, subject.build())


def digest(folder: Path) -> dict[str, str]:
    """Return the hash of every file below ``folder`` by relative path."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
