"""A small non-linear classifier in float64, and views of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import pytest
import torch
from vcr_core.adaptive import DefenseLink, View
from vcr_core.goals import Goals
from vcr_core.metering import GuardedModel
from vcr_core.protocols import ClipSpec, LabelSpace
from vcr_core.threat import Linf, ThreatModel
from vcr_core.victim import Rules, Victim

CLASSES = 5
FRAMES, SIZE = 4, 6


class Net:
    """Two crops, a random projection, a saturation: the gradient is nowhere trivial."""

    labels = LabelSpace("net", tuple("abcde"))
    clip = ClipSpec(frames=FRAMES, size=SIZE)

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        shape = (FRAMES * 3 * SIZE * SIZE, CLASSES)
        self.weight = torch.randn(shape, generator=generator, dtype=torch.float64) / 5
        self.calls = 0

    def logits(self, clips: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        both = torch.stack([clips, clips.flip(-1)], dim=1).double()
        return 3 * torch.tanh(both.flatten(2) @ self.weight)

    def to(self, device: Any) -> Self:
        return self


@pytest.fixture
def net() -> Net:
    return Net()


@pytest.fixture
def make_view(net: Net) -> Callable[..., View]:
    def make(
        *links: tuple[Any, str, bool], views: int = 1, chunk: int | None = None, **options: Any
    ) -> View:
        gather = torch.arange(FRAMES).repeat(views, 1)
        gather[1:] = (gather[1:] + 1) % (FRAMES + 1)
        chain = [
            DefenseLink(type(d).__name__, d, gradient, stochastic)  # type: ignore[arg-type]
            for d, gradient, stochastic in links
        ]
        return View(GuardedModel(net), gather, chain, chunk=chunk, **options)  # type: ignore[arg-type]

    return make


@pytest.fixture
def clean() -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, 256, (3, FRAMES + 1, 3, SIZE, SIZE), generator=generator) / 255


@pytest.fixture
def make_victim(make_view: Callable[..., View], clean: torch.Tensor) -> Callable[..., Victim]:
    def make(
        *links: tuple[Any, str, bool],
        labels: Sequence[int] | None = None,
        targets: Sequence[int] | None = None,
        threat: ThreatModel | None = None,
        views: int = 2,
        **rules: Any,
    ) -> Victim:
        view = make_view(*links, views=views)
        with torch.no_grad():
            from vcr_core.randomness import VideoRandom

            predicted = view(clean, VideoRandom([0] * len(clean))).argmax(1)
        y = predicted if labels is None else torch.tensor(labels)
        goals = Goals(y, None if targets is None else torch.tensor(targets))
        return Victim(
            view, clean, goals, threat or Linf("8/255"), ids=["a", "b", "c"], seed=7,
            rules=Rules(**rules),
        )  # fmt: skip

    return make
