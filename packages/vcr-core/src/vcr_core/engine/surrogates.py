"""Models that a transfer attack may use instead of the victim, metered apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from vcr_core.adaptive import View
from vcr_core.datasets.labels import match_labels
from vcr_core.engine.models import built_model
from vcr_core.errors import ContractViolation
from vcr_core.threat import Unbounded
from vcr_core.victim import Rules, Victim

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch import Tensor

    from vcr_core.config.schema import ProtocolConfig
    from vcr_core.goals import Goals
    from vcr_core.protocols import LabelSpace, VideoClassifier
    from vcr_core.specs import ClipSpec


@dataclass(slots=True)
class SurrogatePool:
    """Surrogate models by reference, built at first use and kept for the whole share.

    Attributes:
        labels: classes of the model under attack; a surrogate answers in their order.
        device: where surrogates live.
        protocol: of the run; its views are also those of a surrogate.
        folders: where their weight files are looked for before the usual places.
    """

    labels: LabelSpace
    device: torch.device
    protocol: ProtocolConfig
    folders: Sequence[Path] = ()
    _models: dict[str, VideoClassifier] = field(default_factory=dict)

    def model(self, name: str) -> VideoClassifier:
        """Return a surrogate with the classes of the model under attack, in their order.

        Raises:
            UnknownComponent: if no model has that name.
            ConfigError: if the surrogate does not know the classes.
        """
        if name not in self._models:
            from vcr_core.config.objects import choose_component

            model = built_model(choose_component("model", name, {}), self.protocol, self.folders)
            if model.labels.names != self.labels.names:
                index = match_labels(
                    self.labels.names, model.labels.names, f"surrogate model {name!r}"
                )
                model = _Reordered(model, self.labels, [index[n] for n in self.labels.names])
            self._models[name] = model.to(self.device)
        return self._models[name]


class Surrogates:
    """The surrogates of one contest: what ``ctx.surrogate`` asks.

    A surrogate is a :class:`~vcr_core.victim.Victim` with white-box access that never stops early
    and has no budget; its passes are counted as surrogate passes. It knows no threat model and does
    not round: an attack may ask it about rolled or mixed videos, far from the clean ones.
    """

    def __init__(
        self,
        pool: SurrogatePool,
        clean: Tensor,
        gather: Tensor,
        goals: Goals,
        *,
        ids: Sequence[str],
        seed: int,
        chunk: int | None,
    ) -> None:
        self._pool = pool
        self._clean = clean
        self._gather = gather
        self._goals = goals
        self._ids = ids
        self._seed = seed
        self._chunk = chunk
        self._victims: dict[str, Victim] = {}

    def __call__(self, name: str) -> Victim:
        """Return the surrogate of that name."""
        if name not in self._victims:
            model = self._pool.model(name)
            frames = model.clip.frames
            if frames != self._gather.shape[1]:
                raise ContractViolation(
                    f"surrogate {name!r} takes clips of {frames} frames, the model under attack "
                    f"{self._gather.shape[1]}"
                )
            self._victims[name] = Victim(
                View(model, self._gather, chunk=self._chunk),
                self._clean,
                self._goals,
                Unbounded(quantize=False),
                ids=self._ids,
                seed=self._seed,
                rules=Rules(access="white-box", stop="budget"),
            )
        return self._victims[name]

    def forwards(self, row: int) -> int:
        """Return how many surrogate passes one video took."""
        return sum(victim.meters[row].forwards for victim in self._victims.values())

    def backwards(self, row: int) -> int:
        """Return how many surrogate gradients one video took."""
        return sum(victim.meters[row].backwards for victim in self._victims.values())


class _Reordered:
    """A classifier whose classes come in another order."""

    def __init__(self, model: VideoClassifier, labels: LabelSpace, index: list[int]) -> None:
        self.labels = labels
        self._model = model
        self._index = index

    @property
    def clip(self) -> ClipSpec:
        return self._model.clip

    def logits(self, clips: Tensor) -> Tensor:
        return self._model.logits(clips)[..., self._index]

    def to(self, device: torch.device | str) -> _Reordered:
        self._model = self._model.to(device)
        return self
