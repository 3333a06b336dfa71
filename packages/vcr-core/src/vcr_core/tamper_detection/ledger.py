"""Sums over videos by the recording they were made from, and numbers with intervals from them.

All versions of a recording are drawn together: they are not independent of each other.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from vcr_core import stats
from vcr_core.resampling import resampled_sums
from vcr_core.separation import resample_count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Sums: TypeAlias = "Mapping[str, float]"
Statistic: TypeAlias = "Callable[[Sums], float | None]"

METHOD = "bootstrap over sources"


class Ledger:
    """Named sums over videos.

    Args:
        sources: the recordings, each once; they are what is resampled.
        seed: of the resamples.
    """

    def __init__(self, sources: Sequence[str], seed: int) -> None:
        self.sources = {source: place for place, source in enumerate(sources)}
        self.seed = seed
        self._columns: dict[str, list[float]] = {}

    def add(self, name: str, source: str, value: float) -> None:
        """Add what one video of a source contributes to a sum; before the first estimate."""
        column = self._columns.setdefault(name, [0.0] * len(self.sources))
        column[self.sources[source]] += value

    def total(self, name: str) -> float:
        """Return a sum over all videos, 0 where nothing was added."""
        return self._totals[name]

    def estimate(self, statistic: Statistic, n: float, reason: str) -> dict[str, Any]:
        """Return a number that is a function of the sums, with its interval.

        Args:
            statistic: the function; ``None`` where a denominator is 0.
            n: number of videos it rests on.
            reason: why there is no value, if there is none.

        Returns:
            ``{value, n, ci95, method}``, with ``reason`` instead of a value, and ``dropped`` where
            resamples had none.
        """
        value = statistic(self._totals)
        drawn = [] if value is None else [statistic(sums) for sums in self._resampled]
        return entry(value, drawn, n, reason)

    def share(self, top: str, bottom: str, reason: str) -> dict[str, Any]:
        """Return the quotient of two sums that count videos, with its interval.

        Where no source has more than one of the videos these are independent of each other, and
        the interval is Wilson's, which has a width also at 0 and at 1.
        """
        bottoms = self._columns.get(bottom, [])
        tops = self._columns.get(top, [0.0] * len(bottoms))
        n = sum(bottoms)
        if n and all(t in (0, 1) and b in (0, 1) for t, b in zip(tops, bottoms, strict=True)):
            found = stats.rate(sum(tops), n)
            return {
                "value": found.value, "n": found.n, "ci95": found.ci95, "method": found.method,
            }  # fmt: skip
        return self.estimate(lambda s: over(s[top], s[bottom]), n, reason)

    @cached_property
    def _totals(self) -> Sums:
        return _Zero({name: sum(column) for name, column in self._columns.items()})

    @cached_property
    def _resampled(self) -> list[Sums]:
        names, columns = list(self._columns), list(self._columns.values())
        resamples = resample_count(len(self.sources))
        return [
            _Zero(zip(names, sums, strict=True))
            for sums in resampled_sums(columns, resamples, self.seed)
        ]


class _Zero(dict[str, float]):
    """Sums to which nothing was added are 0."""

    def __missing__(self, name: str) -> float:
        return 0.0


def entry(
    value: float | None, drawn: Sequence[float | None], n: float, reason: str
) -> dict[str, Any]:
    """Return a number as summaries have it, from its values over resamples."""
    found: dict[str, Any] = {"value": value, "n": int(n), "ci95": None, "method": METHOD}
    if value is None:
        return {**found, "reason": reason}
    known = [x for x in drawn if x is not None]
    found["ci95"] = list(stats.percentiles(known, value))
    if len(known) < len(drawn):
        found["dropped"] = len(drawn) - len(known)
    return found


def over(top: float, bottom: float) -> float | None:
    """Return a quotient, ``None`` where the denominator is 0."""
    return top / bottom if bottom > 0 else None


def mean_of(values: Sequence[float | None]) -> float | None:
    """Return the mean, ``None`` if a part of it is missing or there is none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
