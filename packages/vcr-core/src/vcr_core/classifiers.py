"""What a classifier is, and what it may offer besides; ``vcr_core.protocols`` has the names too."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, runtime_checkable

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from vcr_core.protocols import LabelSpace
    from vcr_core.specs import ClipSpec


@runtime_checkable
class VideoClassifier(Protocol):
    """A classifier of clips. Resizing, cropping and normalising happen inside, differentiably."""

    @property
    def labels(self) -> LabelSpace:
        """The classes of the head, in order."""
        ...

    @property
    def clip(self) -> ClipSpec:
        """What to sample from a video."""
        ...

    def logits(self, clips: Tensor) -> Tensor:
        """Return logits ``[N, V_crop, K]`` of clips ``[N, T', C, H, W]`` in [0, 1]."""
        ...

    def to(self, device: torch.device | str) -> Self:
        """Move to ``device`` and return the model."""
        ...


@runtime_checkable
class TimedClassifier(Protocol):
    """What a classifier is besides that has to know how fast its frames follow each other."""

    def at_rate(self, fps: float | None) -> VideoClassifier:
        """Return this classifier for clips of so many frames a second, ``None`` if unknown.

        The result shares weights and device with this one; videos of other rates are not asked
        about together with these.
        """
        ...


@runtime_checkable
class ViewedClassifier(Protocol):
    """What a classifier is besides that makes several crops of a clip."""

    def for_views(self, views: Literal["full", "light"]) -> VideoClassifier:
        """Return this classifier making as many crops as ``protocol.views`` asks for.

        ``full``: those of its published evaluation; ``light``: one. The result shares weights and
        device with this one.
        """
        ...


@runtime_checkable
class DetailedClassifier(Protocol):
    """What a classifier is besides that tells more of a video than its class.

    A detector, for instance, has a score and a decision. The facts stand in the record beside the
    prediction. They are told of a video of which the model sees one clip.
    """

    def examine(self, clips: Tensor) -> tuple[Tensor, Sequence[Mapping[str, Any]]]:
        """Return logits as :meth:`VideoClassifier.logits` and the facts of each clip.

        Keys as in :class:`vcr_core.record_schema.Corner`: ``score``, ``tampered``, ``segment_s``,
        ``evidence``, ``abstained``. It is asked instead of ``logits`` where predictions are
        recorded, without gradients.
        """
        ...


class BaseVideoClassifier(ABC):
    """Optional base of classifiers: subclass, set ``labels`` and ``clip``, write ``logits``."""

    labels: LabelSpace
    clip: ClipSpec

    @abstractmethod
    def logits(self, clips: Tensor) -> Tensor:
        """Return logits ``[N, V_crop, K]`` of clips ``[N, T', C, H, W]`` in [0, 1]."""

    @abstractmethod
    def to(self, device: torch.device | str) -> Self:
        """Move to ``device`` and return the model."""
