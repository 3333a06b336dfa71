"""The statistics of randomized smoothing: functions of counts, without draws or models.

Cohen, Rosenfeld, Kolter, ICML 2019: ``PREDICT`` and ``CERTIFY`` in section 3.2.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from vcr_core.stats import clopper_pearson, incomplete_beta

if TYPE_CHECKING:
    from collections.abc import Sequence


def binomial_p_value(first: int, second: int) -> float:
    """Return the two-sided p-value of ``first`` against ``second`` votes under equal chances.

    The exact binomial test of ``first`` successes in ``first + second`` trials at 1/2.

    Example:
        >>> round(binomial_p_value(60, 40), 5), round(binomial_p_value(10, 0), 5)
        (0.05689, 0.00195)

    Raises:
        ValueError: for a negative count.
    """
    if first < 0 or second < 0:
        raise ValueError(f"votes cannot be negative: {first} and {second}")
    most, least = max(first, second), min(first, second)
    # P(X >= most) of n fair trials is I_{1/2}(most, least + 1).
    return min(1.0, 2 * incomplete_beta(0.5, most, least + 1)) if most > least else 1.0


def lower_bound(count: int, n: int, alpha: float) -> float:
    """Return the one-sided Clopper-Pearson lower bound of a probability.

    The ``alpha`` quantile of Beta(``count``, ``n - count + 1``); 0 for no success.

    Example:
        >>> round(lower_bound(99, 100, 0.001), 6)
        0.911373

    Raises:
        ValueError: unless ``0 <= count <= n``, ``n > 0`` and ``0 < alpha < 1/2``.
    """
    return clopper_pearson(count, n, 2 * alpha)[0]


def certified_radius(sigma: float, p_lower: float) -> float:
    """Return the L2 radius ``sigma * Φ⁻¹(p_lower)``; 0 where the bound is 1/2 or less.

    Cohen et al., theorem 1 with the bound ``1 - p_lower`` for the runner-up.
    """
    return sigma * NormalDist().inv_cdf(p_lower) if p_lower > 0.5 else 0.0


def abstains(counts: Sequence[int], alpha: float) -> bool:
    """Return whether the lead of the most frequent class could be chance at level ``alpha``."""
    first, second, *_ = [*sorted(counts, reverse=True), 0]
    return binomial_p_value(first, second) > alpha


def certificate(
    selection: Sequence[int], counts: Sequence[int], *, sigma: float, alpha: float, dims: int
) -> dict[str, Any]:
    """Return the certificate of one video, as :class:`vcr_core.record_schema.Certificate`.

    Args:
        selection: votes by class of the draws that choose the class; ties go to the lower one.
        counts: votes by class of other draws. Using the same ones twice voids the guarantee.
        sigma: standard deviation of the noise, fraction of the pixel range.
        alpha: probability that the guarantee does not hold.
        dims: numbers that the video consists of.
    """
    chosen = max(range(len(selection)), key=lambda k: (selection[k], -k))
    n = sum(counts)
    bound = lower_bound(counts[chosen], n, alpha)
    certified = bound > 0.5
    return {
        "class": chosen if certified else None,
        "radius": certified_radius(sigma, bound) if certified else 0.0,
        "p_lower": bound,
        "count": counts[chosen],
        "n0": sum(selection),
        "n": n,
        "alpha": alpha,
        "sigma": sigma,
        "norm": "l2",
        "dims": dims,
    }
