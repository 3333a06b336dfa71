"""Finding forward passes that did not go through the victim."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import nn

from vcr_core.errors import NotAvailable
from vcr_core.precision import autocast
from vcr_core.protocols import DetailedClassifier, TimedClassifier

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import torch
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

    Args:
        model: the classifier.
        guard: that of the same model at another frame rate.
        dtype: what its passes are computed in under ``torch.autocast``; ``None`` leaves them.
        is_compiled: whether its inner layers are out of reach.
    """

    def __init__(
        self,
        model: VideoClassifier,
        *,
        guard: _Guard | None = None,
        dtype: torch.dtype | None = None,
        is_compiled: bool = False,
    ) -> None:
        self.model = model
        self._dtype = dtype
        self._is_compiled = is_compiled
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
        model = self.model.at_rate(fps)
        return GuardedModel(
            model, guard=self._guard, dtype=self._dtype, is_compiled=self._is_compiled
        )

    def logits(self, clips: Tensor) -> Tensor:
        """Return the wrapped model's logits."""
        with self._entered():
            return autocast(self.model.logits, clips, self._dtype)

    def features(self, clips: Tensor, layer: str) -> Tensor:
        """Return the wrapped model's activations of a named layer, if it offers any.

        Raises:
            NotAvailable: if the model is compiled.
        """
        if self._is_compiled:
            raise NotAvailable(
                f"a compiled model does not show its layer {layer!r}; set runtime.compile = false"
            )
        model: Any = self.model
        with self._entered():
            return autocast(lambda part: model.features(part, layer), clips, self._dtype)

    def examine(self, clips: Tensor) -> tuple[Tensor, Sequence[Mapping[str, Any]]]:
        """Return the wrapped model's logits and what it tells; nothing where it has no word."""
        with self._entered():
            model = self.model
            if not isinstance(model, DetailedClassifier):
                return autocast(model.logits, clips, self._dtype), ()
            details: Sequence[Mapping[str, Any]] = ()

            def asked(part: Tensor) -> Tensor:
                nonlocal details
                out, details = model.examine(part)
                return out

            return autocast(asked, clips, self._dtype), details

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
