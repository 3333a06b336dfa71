"""Finding forward passes that did not go through the victim."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import nn

from vcr_core.protocols import DetailedClassifier, TimedClassifier

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torch import Tensor

    from vcr_core.protocols import ClipSpec, LabelSpace, VideoClassifier


@dataclass(slots=True)
class _Guard:
    """What is known of the calls to a model and to its variants for single frame rates."""

    unmetered: int = 0
    permitted: int = 0
    watching: bool = False


class GuardedModel:
    """A classifier that knows which of its calls were metered.

    While :meth:`watch` is on, a forward pass outside of :meth:`permit` counts as unmetered, also
    one that goes to the wrapped model's modules directly.
    """

    def __init__(self, model: VideoClassifier, *, guard: _Guard | None = None) -> None:
        self.model = model
        self._guard = guard or _Guard()

    @property
    def unmetered(self) -> int:
        """Unmetered calls since watching began."""
        return self._guard.unmetered

    @property
    def labels(self) -> LabelSpace:
        """Labels of the wrapped model."""
        return self.model.labels

    @property
    def clip(self) -> ClipSpec:
        """Clip of the wrapped model."""
        return self.model.clip

    def to(self, device: Any) -> GuardedModel:
        """Move the wrapped model."""
        self.model = self.model.to(device)
        return self

    @property
    def is_timed(self) -> bool:
        """Whether the wrapped model has to know the rate of its frames."""
        return isinstance(self.model, TimedClassifier)

    @property
    def is_detailed(self) -> bool:
        """Whether the wrapped model tells more than a class."""
        return isinstance(self.model, DetailedClassifier)

    def at_rate(self, fps: float | None) -> GuardedModel:
        """Return the wrapped model for clips of this rate, behind the same guard."""
        if not isinstance(self.model, TimedClassifier):
            return self
        return GuardedModel(self.model.at_rate(fps), guard=self._guard)

    def logits(self, clips: Tensor) -> Tensor:
        """Return the wrapped model's logits."""
        with self._entered():
            return self.model.logits(clips)

    def examine(self, clips: Tensor) -> tuple[Tensor, Sequence[Mapping[str, Any]]]:
        """Return the wrapped model's logits and what it tells; nothing where it has no word."""
        with self._entered():
            if isinstance(self.model, DetailedClassifier):
                return self.model.examine(clips)
            return self.model.logits(clips), ()

    @contextmanager
    def _entered(self) -> Iterator[None]:
        guard = self._guard
        if guard.watching and not guard.permitted:
            guard.unmetered += 1
        with self.permit():
            yield

    @contextmanager
    def permit(self) -> Iterator[None]:
        """Mark the calls of this block as metered."""
        self._guard.permitted += 1
        try:
            yield
        finally:
            self._guard.permitted -= 1

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Count unmetered calls during this block, from 0 on."""
        self._guard.unmetered = 0
        self._guard.watching = True
        handles = [
            module.register_forward_pre_hook(self._seen) for module in modules_of(self.model)
        ]
        try:
            yield
        finally:
            self._guard.watching = False
            for handle in handles:
                handle.remove()

    def _seen(self, _module: nn.Module, _inputs: Any) -> None:
        if not self._guard.permitted:
            self._guard.unmetered += 1


def frozen(model: VideoClassifier) -> VideoClassifier:
    """Put a classifier's modules into evaluation mode, without parameter gradients; return it."""
    for module in modules_of(model):
        module.eval()
        module.requires_grad_(False)
    return model


def modules_of(model: Any) -> list[nn.Module]:
    """Return the outermost torch modules of a classifier: itself or its attributes."""
    if isinstance(model, nn.Module):
        return [model]
    return [value for value in vars(model).values() if isinstance(value, nn.Module)]
