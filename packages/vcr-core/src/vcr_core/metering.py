"""Finding forward passes that did not go through the victim."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from torch import nn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from vcr_core.protocols import ClipSpec, LabelSpace, VideoClassifier


class GuardedModel:
    """A classifier that knows which of its calls were metered.

    While :meth:`watch` is on, a forward pass outside of :meth:`permit` counts as unmetered, also
    one that goes to the wrapped model's modules directly.
    """

    def __init__(self, model: VideoClassifier) -> None:
        self.model = model
        self.unmetered = 0
        self._permitted = 0
        self._watching = False

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

    def logits(self, clips: Tensor) -> Tensor:
        """Return the wrapped model's logits."""
        if self._watching and not self._permitted:
            self.unmetered += 1
        self._permitted += 1
        try:
            return self.model.logits(clips)
        finally:
            self._permitted -= 1

    @contextmanager
    def permit(self) -> Iterator[None]:
        """Mark the calls of this block as metered."""
        self._permitted += 1
        try:
            yield
        finally:
            self._permitted -= 1

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Count unmetered calls during this block, from 0 on."""
        self.unmetered = 0
        self._watching = True
        handles = [
            module.register_forward_pre_hook(self._seen) for module in modules_of(self.model)
        ]
        try:
            yield
        finally:
            self._watching = False
            for handle in handles:
                handle.remove()

    def _seen(self, _module: nn.Module, _inputs: Any) -> None:
        if not self._permitted:
            self.unmetered += 1


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
