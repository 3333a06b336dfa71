"""A logarithmic axis for charts whose quantities span orders of magnitude."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from vcr_core.reporters.charts import PLOT_LEFT, PLOT_RIGHT, Tick

CLOSEST = 26.0


@dataclass(frozen=True, slots=True)
class LogAxis:
    """An axis from ``low`` to ``high``, both above 0 and apart."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Return where a value is, in SVG units; values outside are at the ends."""
        share = math.log(value / self.low) / math.log(self.high / self.low) if value > 0 else 0.0
        return round(PLOT_LEFT + (PLOT_RIGHT - PLOT_LEFT) * min(max(share, 0.0), 1.0), 1)

    def ticks(self) -> tuple[Tick, ...]:
        """Return ticks at 1, 2 and 5 times powers of ten, as many as have room."""
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for steps in ((1, 2, 5), (1,), (1,)):
            values = [s * 10.0**e for e in range(first, last + 1) for s in steps]
            inside = [v for v in values if self.low * 0.999 <= v <= self.high * 1.001]
            places = [self.at(v) for v in inside]
            if all(b - a >= CLOSEST for a, b in pairwise(places)):
                break
        else:
            inside = [v for v in inside if round(math.log10(v)) % 2 == 0]
        return tuple(Tick(at=self.at(v), text=_plain(v)) for v in inside)


def axis_over(values: Sequence[float]) -> LogAxis | None:
    """Return an axis with a margin around positive values, ``None`` without any.

    Example:
        >>> axis = axis_over([10, 1000])
        >>> axis.low < 10 < 1000 < axis.high
        True
    """
    positive = [value for value in values if value > 0]
    if not positive:
        return None
    low, high = min(positive), max(positive)
    margin = max(high / low, 2.0) ** 0.08
    return LogAxis(low / margin, high * margin)


def _plain(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:g}M"
    return f"{value / 1e3:g}k" if value >= 1e4 else f"{value:g}"
