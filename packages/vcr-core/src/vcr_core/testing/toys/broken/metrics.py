"""Metrics with the faults of published ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from vcr_core.protocols import Reading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from vcr_core.protocols import ClipInfo


class _Difference:
    key = "toy-difference"

    def measure(
        self, reference: Tensor, test: Tensor, info: ClipInfo
    ) -> Mapping[str, float | Reading | None]:
        """Return a value that breaks a rule."""
        return {self.key: self.value(255 * float((reference - test).abs().mean()), test)}

    def value(self, difference: float, test: Tensor) -> float | Reading | None:
        """Break the rule."""
        raise AssertionError("every broken metric defines this")


class Shifted(_Difference):
    """Is not 0 for identical clips."""

    def value(self, difference: float, test: Tensor) -> float:
        """Return one more."""
        return difference + 1


class OneSided(_Difference):
    """Depends on which clip comes first."""

    def value(self, difference: float, test: Tensor) -> float:
        """Weigh by the second clip."""
        return difference * float(test.mean())


class Better(_Difference):
    """Falls with noise, though its spec says that lower is better."""

    def value(self, difference: float, test: Tensor) -> float:
        """Return the opposite."""
        return -difference


class Infinite(_Difference):
    """Divides by zero for identical clips."""

    def value(self, difference: float, test: Tensor) -> float:
        """Return infinity."""
        return float("inf") if difference == 0 else 1 / difference


class NoReason(_Difference):
    """Is missing without saying why."""

    def value(self, difference: float, test: Tensor) -> Reading | float:
        """Return an unexplained gap."""
        return Reading(None) if difference == 0 else difference


class Remembers(_Difference):
    """Adds up what it has seen."""

    total = 0.0

    def value(self, difference: float, test: Tensor) -> float:
        """Return the sum so far."""
        self.total += difference
        return self.total


class Draws(_Difference):
    """Looks at a pixel that a global generator chooses."""

    def value(self, difference: float, test: Tensor) -> float:
        """Add next to nothing."""
        pixel = torch.randint(test.numel(), ())
        return difference + 1e-9 * float(test.flatten()[pixel])


class OtherKey(Shifted):
    """Reports under a key that its spec does not declare."""

    key = "toy-something"


class Flat(Shifted):
    """Has a distance that does not depend on the video."""

    def value(self, difference: float, test: Tensor) -> float:
        """Return the difference."""
        return difference

    def distance(self, reference: Tensor, test: Tensor) -> Tensor:
        """Return the size of the difference, cut off from the video."""
        gaps = (reference - test.detach()).abs().flatten(1).mean(1)
        return gaps + 0 * test.flatten(1).sum(1)
