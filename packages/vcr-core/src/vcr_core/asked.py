"""What is asked in one pass through a model and its defenses, and what each part tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from vcr_core.errors import ContractViolation
from vcr_core.protocols import DetailedFn

if TYPE_CHECKING:
    from torch import Tensor

    from vcr_core.protocols import ClipFn

ExamineFn: TypeAlias = "Callable[[Tensor], tuple[Tensor, Sequence[Mapping[str, Any]]]]"


class Examined:
    """The bare model as the innermost function of one pass, with what it tells.

    Args:
        examine: asks the model; returns ``[B, K]`` and what it tells of each clip.
        rows: number of videos.
    """

    def __init__(self, examine: ExamineFn, rows: int) -> None:
        self._examine = examine
        self._rows = rows
        self._calls = 0
        self._told: Sequence[Mapping[str, Any]] = ()

    def __call__(self, clips: Tensor) -> Tensor:
        """Return log-probabilities ``[B, K]`` of clips ``[B, V, T', C, H, W]``."""
        self._calls += 1
        out, self._told = self._examine(clips)
        return out

    def details(self) -> Sequence[Mapping[str, Any]]:
        """Return facts of each video; none where it was asked more than once."""
        # Of one clip a video: what is said of several draws or views describes none of them.
        return self._told if self._calls == 1 and len(self._told) == self._rows else ()


class Checked:
    """A defended function whose results are checked and whose facts are kept.

    Args:
        name: the defense's reference.
        inner: the defended function.
        rows: number of videos; a defense draws for so many, so it is asked so many at a time.
    """

    def __init__(self, name: str, inner: ClipFn, rows: int) -> None:
        self._name = name
        self._inner = inner
        self._rows = rows
        self._calls = 0

    def __call__(self, shown: Tensor) -> Tensor:
        """Return log-probabilities ``[B, K]``, asking for as many videos at a time as there are."""
        if len(shown) <= self._rows:
            return self._once(shown)
        return torch.cat([self._once(part) for part in torch.split(shown, self._rows)])

    def _once(self, shown: Tensor) -> Tensor:
        self._calls += 1
        out = self._inner(shown)
        if not bool(torch.isfinite(out).any(dim=1).all()) or bool(torch.isnan(out).any()):
            raise ContractViolation(
                f"defense {self._name!r} led to predictions that are not finite; "
                "NaN is an error, not a prediction"
            )
        return out

    def details(self) -> Sequence[Mapping[str, Any]]:
        """Return facts of each video; none where it was asked more than once."""
        if self._calls != 1 or not isinstance(self._inner, DetailedFn):
            return ()
        return self._inner.details()
