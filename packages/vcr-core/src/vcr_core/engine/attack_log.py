"""What an attack tells the core while it runs."""

from __future__ import annotations

from typing import Any


class AttackLog:
    """The attack's log: claims of success, which the core checks, and radii of single videos."""

    def __init__(self) -> None:
        self.claims: dict[int, bool] = {}
        self.eps: dict[int, float] = {}

    def __call__(
        self, rows: Any = (), *, achieved: Any = None, eps: Any = None, **_values: Any
    ) -> None:
        """Keep what is told of these rows; other values are ignored."""
        listed = [int(r) for r in rows]
        if achieved is not None:
            told = [achieved] * len(listed) if isinstance(achieved, bool) else list(achieved)
            for row, claim in zip(listed, told, strict=True):
                self.claims[row] = bool(claim)
        if eps is not None:
            for row, radius in zip(listed, eps, strict=True):
                self.eps[row] = float(radius)
