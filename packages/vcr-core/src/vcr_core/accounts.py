"""What a run allows an attack, and what one video has cost it so far."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from vcr_core.specs import Access

TRACE_POINTS = 64
"""Most points of a trace that a record keeps."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Budgets and the stop rule, the same for every video of a run.

    Attributes:
        access: what the attack declared.
        stop: ``first_success``, ``budget`` (never stop early) or ``confidence``.
        confidence: target probability that ``confidence`` asks of a targeted success.
        confirm: further draws that a random victim must lose before a video counts as done.
        eot: draws over which gradients are averaged.
        max_forwards: forward passes per video, ``None`` for no limit.
        max_backwards: backward passes per video, ``None`` for no limit.
    """

    access: Access = "white-box"
    stop: Literal["first_success", "budget", "confidence"] = "first_success"
    confidence: float = 0.5
    confirm: int = 3
    eot: int = 1
    max_forwards: int | None = None
    max_backwards: int | None = None


@dataclass(slots=True)
class Meter:
    """What one video cost and what was seen on the way."""

    forwards: int = 0
    backwards: int = 0
    iterations: int = 0
    queries_to_first_success: int | None = None
    zero_gradients: int = 0
    exhausted: bool = False
    done: bool = False
    achieved: bool = False
    loss: float = math.inf
    trace: list[tuple[int, float, float]] = field(default_factory=list)

    def sampled_trace(self) -> list[list[float]]:
        """Return at most 64 points ``[forwards, loss, p_label]``, first and last included."""
        points = self.trace
        if len(points) > TRACE_POINTS:
            last = len(points) - 1
            points = [points[i * last // (TRACE_POINTS - 1)] for i in range(TRACE_POINTS)]
        return [[n, round(loss, 6), round(p, 6)] for n, loss, p in points]
