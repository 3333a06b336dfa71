"""How many videos a paired comparison needs, and p-values when there are many of them."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

from vcr_core.stats import incomplete_beta

if TYPE_CHECKING:
    from collections.abc import Sequence

ALPHA = 0.05
POWER = 0.8
MAX_EXACT = 20_000
"""With more videos than this the normal approximation is used: they agree, and it costs no time."""

_TAIL = 1e-10


def mcnemar_power(n: int, only_a: float, only_b: float, *, alpha: float = ALPHA) -> float:
    """Return the probability that the exact McNemar test on ``n`` videos rejects equality.

    Exact and unconditional: the number of videos on which the systems disagree is binomial, and
    given it, so is the number that the first system alone gets right.

    Args:
        n: number of videos that both systems are judged on.
        only_a: probability that a video is right for the first system alone.
        only_b: probability that it is right for the second system alone.
        alpha: level of the two-sided test.

    Raises:
        ValueError: unless the probabilities are ones and ``n`` is not negative.
    """
    disagree = only_a + only_b
    if n < 0 or min(only_a, only_b) < 0 or disagree > 1 + 1e-12:
        raise ValueError(f"n = {n}, {only_a}, {only_b} are no count and two probabilities")
    if disagree == 0:
        return 0.0
    disagree = min(disagree, 1.0)
    share = only_a / disagree
    centre = n * disagree
    spread = 7 * math.sqrt(max(centre * (1 - disagree), 1.0)) + 1
    total = 0.0
    for d in range(max(0, math.floor(centre - spread)), min(n, math.ceil(centre + spread)) + 1):
        weight = _binomial(d, n, disagree)
        if weight < _TAIL:
            continue
        critical = _critical(d, alpha)
        if critical >= 0:
            rejected = _at_most(critical, d, share) + _at_most(critical, d, 1 - share)
            total += weight * min(rejected, 1.0)
    return min(total, 1.0)


def videos_needed(
    only_a: float, only_b: float, *, power: float = POWER, alpha: float = ALPHA
) -> int | None:
    """Return how many videos an exact McNemar test needs to find a difference.

    Connor, Biometrics 43 (1987), equation for the paired design, then raised until the exact test
    has the power that was asked for (above :data:`MAX_EXACT` videos it is left as it is).

    Args:
        only_a: probability that a video is right for the first system alone.
        only_b: probability that it is right for the second system alone.
        power: probability to find the difference.
        alpha: level of the two-sided test.

    Returns:
        The number of videos; ``None`` where there is no difference to find.
    """
    difference, disagree = abs(only_a - only_b), only_a + only_b
    if difference < 1e-12:
        return None
    normal = NormalDist()
    z_alpha, z_beta = normal.inv_cdf(1 - alpha / 2), normal.inv_cdf(power)
    inside = max(disagree - difference * difference, 0.0)
    n = math.ceil(((z_alpha * math.sqrt(disagree) + z_beta * math.sqrt(inside)) / difference) ** 2)
    if n > MAX_EXACT:
        return n
    step = max(1, n // 50)
    while mcnemar_power(n, only_a, only_b, alpha=alpha) < power:
        n += step
    return n


def detectable(difference: float, only_a: float, only_b: float) -> tuple[float, float]:
    """Return disagreement with a given difference and otherwise as much as was observed.

    Args:
        difference: rate of the second system minus that of the first, in [-1, 1].
        only_a: observed share of videos that are right for the first system alone.
        only_b: observed share that is right for the second system alone.

    Returns:
        Probabilities for :func:`videos_needed`. Two systems that differ by 5 points disagree on at
        least 5 % of the videos, so that is the least that is assumed.

    Raises:
        ValueError: if ``difference`` is no difference of two rates.
    """
    if not -1 <= difference <= 1:
        raise ValueError(f"{difference} is no difference of two rates: -1 to 1 are needed")
    disagree = max(only_a + only_b, abs(difference))
    return (disagree - difference) / 2, (disagree + difference) / 2


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number, in the order given.

    Holm, Scandinavian Journal of Statistics 6 (1979): the probability of one false finding or more
    among all tests stays below the level, whatever depends on what.

    Example:
        >>> [round(p, 6) for p in holm([0.01, 0.04, 0.03])]
        [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


@lru_cache(maxsize=65536)
def _critical(d: int, alpha: float) -> int:
    """Return the largest ``k`` whose two-sided p among ``d`` disagreements is at most ``alpha``."""
    start = (d - NormalDist().inv_cdf(1 - alpha / 2) * math.sqrt(d)) / 2
    k = min(max(-1, math.floor(start) + 1), d)
    while k >= 0 and 2 * _at_most(k, d, 0.5) > alpha * (1 + 1e-12):
        k -= 1
    return k


def _at_most(k: int, n: int, p: float) -> float:
    """Return the probability of at most ``k`` successes in ``n`` trials."""
    return 1.0 if k >= n else incomplete_beta(1 - p, n - k, k + 1)


def _binomial(k: int, n: int, p: float) -> float:
    if p >= 1:
        return 1.0 if k == n else 0.0
    log = (
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        + k * math.log(p) + (n - k) * math.log1p(-p)
    )  # fmt: skip
    return math.exp(log)
