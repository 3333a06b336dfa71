"""Intervals and tests for rates and means: the same numbers on every machine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from vcr_core.resampling import resampled_ratios, resampled_sums

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

Interval: TypeAlias = tuple[float, float]

Z95 = 1.959963984540054
RESAMPLES = 2000
MAX_BOOTSTRAP = 1000
"""With more videos than this the normal interval is used: they agree, and it costs no time."""


@dataclass(frozen=True, slots=True)
class Term:
    """What one video adds to a rate or a mean, which is the sum of ``num`` over that of ``den``.

    A plain mean has ``den = 1`` everywhere. Repeats (draws of a random defense, models, attacks)
    are averaged within the video first: repeats are not videos.
    """

    num: float
    den: float = 1.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 95 % interval.

    Attributes:
        value: ``None`` where the denominator is 0.
        low: lower end, ``None`` where there is no interval.
        high: upper end.
        n: number of videos it rests on.
        method: ``wilson``, ``bootstrap`` (percentiles, videos resampled) or ``normal``.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str

    @property
    def ci95(self) -> list[float] | None:
        """The interval as JSON has it."""
        return None if self.low is None or self.high is None else [self.low, self.high]


def wilson(k: float, n: float, z: float = Z95) -> Interval:
    """Return the Wilson score interval of ``k`` successes in ``n`` trials.

    Wilson, JASA 22 (1927). Never leaves [0, 1], never has zero width.

    Example:
        >>> tuple(round(end, 4) for end in wilson(70, 100))
        (0.6042, 0.7811)

    Raises:
        ValueError: unless ``0 <= k <= n`` and ``n > 0``.
    """
    _check_counts(k, n)
    p = k / n
    scale = 1 + z * z / n
    centre = (p + z * z / (2 * n)) / scale
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / scale
    # Exact at the ends, where rounding would leave 1e-17 instead of 0.
    low = 0.0 if k == 0 else max(0.0, centre - half)
    high = 1.0 if k == n else min(1.0, centre + half)
    return low, high


def clopper_pearson(k: int, n: int, alpha: float = 0.05) -> Interval:
    """Return the exact (conservative) interval of ``k`` successes in ``n`` trials.

    Clopper and Pearson, Biometrika 26 (1934): quantiles of the beta distribution. For a one-sided
    lower bound at level ``alpha`` pass ``2 * alpha`` and take the first number.

    Example:
        >>> tuple(round(end, 4) for end in clopper_pearson(0, 20))
        (0.0, 0.1684)

    Raises:
        ValueError: unless ``0 <= k <= n``, ``n > 0`` and ``0 < alpha < 1``.
    """
    _check_counts(k, n)
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha}, it must lie between 0 and 1")
    low = 0.0 if k == 0 else beta_quantile(alpha / 2, k, n - k + 1)
    high = 1.0 if k == n else beta_quantile(1 - alpha / 2, k + 1, n - k)
    return low, high


def beta_quantile(q: float, a: float, b: float) -> float:
    """Return ``x`` with ``I_x(a, b) = q``, by bisection, to the last bit that matters."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if incomplete_beta(middle, a, b) < q:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function ``I_x(a, b)``.

    The continued fraction of DLMF 8.17.22, evaluated by the modified Lentz method.

    Example:
        >>> round(incomplete_beta(0.5, 2, 3), 6)
        0.6875
    """
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        # The fraction converges fast on the other side only.
        return 1.0 - incomplete_beta(1 - x, b, a)
    log_front = (
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        + a * math.log(x) + b * math.log1p(-x)
    )  # fmt: skip
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    fraction = d
    for m in range(1, 100_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        step = 1.0
        for coefficient in (even, odd):
            d = 1.0 + coefficient * d
            d = 1.0 / (d if abs(d) > tiny else tiny)
            c = 1.0 + coefficient / c
            c = c if abs(c) > tiny else tiny
            step = c * d
            fraction *= step
        if abs(step - 1.0) < 1e-15:
            break
    return math.exp(log_front) * fraction / a


def mcnemar(only_a: int, only_b: int) -> float:
    """Return the exact two-sided p-value of McNemar's test.

    Args:
        only_a: videos on which the first run is right and the second is wrong.
        only_b: videos on which it is the other way round.

    Example:
        >>> round(mcnemar(1, 9), 6)
        0.021484

    Raises:
        ValueError: for a negative count.
    """
    if only_a < 0 or only_b < 0:
        raise ValueError(f"counts cannot be negative: {only_a}, {only_b}")
    n = only_a + only_b
    tail = ways = 1
    for i in range(min(only_a, only_b)):
        ways = ways * (n - i) // (i + 1)
        tail += ways
    # One integer division, so that large counts neither overflow nor underflow early.
    return 1.0 if 2 * tail >= 2**n else 2 * tail / 2**n


def discordant(a: Mapping[str, bool], b: Mapping[str, bool]) -> tuple[int, int]:
    """Return how many shared videos only ``a`` and only ``b`` has true, for :func:`mcnemar`."""
    shared = a.keys() & b.keys()
    return (
        sum(a[video] and not b[video] for video in shared),
        sum(b[video] and not a[video] for video in shared),
    )


def cluster_terms(values: Iterable[tuple[Hashable, float]]) -> list[Term]:
    """Return one term per cluster (a video), the mean of its values; order of first appearance.

    Args:
        values: pairs of cluster and value: the video and, say, the outcome under one attack.
    """
    groups: dict[Hashable, list[float]] = {}
    for cluster, value in values:
        groups.setdefault(cluster, []).append(value)
    return [Term(math.fsum(group) / len(group)) for group in groups.values()]


def rate(k: float, n: float) -> Estimate:
    """Return ``k / n`` with its Wilson interval; ``n = 0`` gives no value."""
    if n == 0:
        return Estimate(None, None, None, 0, "wilson")
    low, high = wilson(k, n)
    return Estimate(k / n, low, high, int(n), "wilson")


def bootstrap_mean(
    values: Sequence[float], *, resamples: int = RESAMPLES, seed: int = 0
) -> Estimate:
    """Return the mean of one value per video with its percentile bootstrap interval."""
    return bootstrap_ratio([Term(value) for value in values], resamples=resamples, seed=seed)


def bootstrap_ratio(
    terms: Sequence[Term], *, resamples: int = RESAMPLES, seed: int = 0
) -> Estimate:
    """Return ``sum(num) / sum(den)`` with its percentile interval over resampled videos.

    Args:
        terms: one per video. Those with ``num = den = 0`` may be there or not: they change
            neither the value nor, noticeably, the interval.
        resamples: number of resamples.
        seed: the same seed gives the same interval.
    """
    counted = sum(1 for term in terms if term.den)
    value = _ratio(terms)
    if value is None:
        return Estimate(None, None, None, counted, "bootstrap")
    if len(terms) > MAX_BOOTSTRAP:
        low, high = _delta_interval(terms, value)
        return Estimate(value, low, high, counted, "normal")
    drawn = resampled_ratios([t.num for t in terms], [t.den for t in terms], resamples, seed)
    return Estimate(value, *percentiles(drawn, value), counted, "bootstrap")


def paired_difference(
    a: Mapping[str, Term],
    b: Mapping[str, Term],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """Return rate of ``b`` minus rate of ``a`` on their shared videos, resampled together.

    Args:
        a: terms of the first run by video (:func:`vcr_core.definitions.terms`).
        b: terms of the second run; videos that only one run has are left out.
        resamples: number of resamples.
        seed: the same seed gives the same interval.
    """
    shared = [video for video in a if video in b]
    first, second = [a[video] for video in shared], [b[video] for video in shared]
    value_a, value_b = _ratio(first), _ratio(second)
    if value_a is None or value_b is None:
        return Estimate(None, None, None, len(shared), "bootstrap")
    value = value_b - value_a
    if len(shared) > MAX_BOOTSTRAP:
        # Both rates linearised at their values: the difference is then one mean of residuals.
        scale_a, scale_b = _mean_den(first), _mean_den(second)
        residuals = [
            (q.num - value_b * q.den) / scale_b - (p.num - value_a * p.den) / scale_a
            for p, q in zip(first, second, strict=True)
        ]
        half = Z95 * _standard_error(residuals)
        return Estimate(value, value - half, value + half, len(shared), "normal")
    drawn = _resample(
        tuple(([t.num for t in side], [t.den for t in side]) for side in (first, second)),
        lambda sums: (
            sums[1][0] / sums[1][1] - sums[0][0] / sums[0][1]
            if sums[0][1] > 0 and sums[1][1] > 0
            else None
        ),
        resamples,
        seed,
    )
    return Estimate(value, *percentiles(drawn, value), len(shared), "bootstrap")


def paired_ratio(
    a: Mapping[str, Term],
    b: Mapping[str, Term],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """Return rate of ``b`` divided by rate of ``a`` on their shared videos, resampled together.

    Arguments as for :func:`paired_difference`. No value where the rate of ``a`` is 0; resamples in
    which it is are left out.
    """
    shared = [video for video in a if video in b]
    first, second = [a[video] for video in shared], [b[video] for video in shared]
    value_a, value_b = _ratio(first), _ratio(second)
    if not value_a or value_b is None:
        return Estimate(None, None, None, len(shared), "bootstrap")
    value = value_b / value_a
    if len(shared) > MAX_BOOTSTRAP:
        # Both rates linearised at their values, as for a difference.
        scale_a, scale_b = _mean_den(first) * value_a, _mean_den(second) * value_a
        residuals = [
            (q.num - value_b * q.den) / scale_b - value * (p.num - value_a * p.den) / scale_a
            for p, q in zip(first, second, strict=True)
        ]
        half = Z95 * _standard_error(residuals)
        return Estimate(value, value - half, value + half, len(shared), "normal")
    drawn = _resample(
        tuple(([t.num for t in side], [t.den for t in side]) for side in (first, second)),
        lambda sums: (
            (sums[1][0] / sums[1][1]) / (sums[0][0] / sums[0][1])
            if sums[0][1] > 0 and sums[1][1] > 0 and sums[0][0] != 0
            else None
        ),
        resamples,
        seed,
    )
    return Estimate(value, *percentiles(drawn, value), len(shared), "bootstrap")


def median(values: Sequence[float]) -> float | None:
    """Return the median, or ``None`` of nothing."""
    ordered = sorted(values)
    if not ordered:
        return None
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return float(ordered[middle])
    return (ordered[middle - 1] + ordered[middle]) / 2


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, or ``None`` of nothing; exact sums, so the order does not matter."""
    return math.fsum(values) / len(values) if values else None


def _check_counts(k: float, n: float) -> None:
    if n <= 0 or not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no proportion: 0 <= k <= n and n > 0 are needed")


def _ratio(terms: Sequence[Term]) -> float | None:
    den = math.fsum(term.den for term in terms)
    return math.fsum(term.num for term in terms) / den if den > 0 else None


def _resample(
    columns: Sequence[tuple[Sequence[float], Sequence[float]]],
    statistic: Callable[[Sequence[tuple[float, float]]], float | None],
    resamples: int,
    seed: int,
) -> list[float]:
    flat = [values for pair in columns for values in pair]
    drawn = []
    for sums in resampled_sums(flat, resamples, seed):
        value = statistic(list(zip(sums[::2], sums[1::2], strict=True)))
        if value is not None:
            drawn.append(value)
    return drawn


def percentiles(drawn: list[float], value: float) -> Interval:
    """Return the 2.5 and 97.5 percentile of resampled values; ``value`` twice if there are none."""
    if not drawn:
        return value, value
    drawn.sort()
    return _quantile(drawn, 0.025), _quantile(drawn, 0.975)


def _quantile(ordered: Sequence[float], q: float) -> float:
    """Return a quantile with linear interpolation (definition 7 of Hyndman and Fan)."""
    position = q * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def _mean_den(terms: Sequence[Term]) -> float:
    return math.fsum(term.den for term in terms) / len(terms)


def _delta_interval(terms: Sequence[Term], value: float) -> Interval:
    scale = _mean_den(terms)
    half = Z95 * _standard_error([(term.num - value * term.den) / scale for term in terms])
    return value - half, value + half


def _standard_error(residuals: Sequence[float]) -> float:
    n = len(residuals)
    centre = math.fsum(residuals) / n
    variance = math.fsum((r - centre) ** 2 for r in residuals) / max(n - 1, 1)
    return math.sqrt(variance / n)
