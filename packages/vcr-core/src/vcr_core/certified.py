"""Certified accuracy over radii, from the certificates in a run's records.

Cohen, Rosenfeld, Kolter, ICML 2019, section 4: the share of videos whose certified class is the
true one with a radius above ``r``. It bounds the accuracy under every attack of that norm below
``r``, up to the failure probability ``alpha`` of each certificate.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from vcr_core import definitions, outcomes
from vcr_core.stats import bootstrap_mean, median, rate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_POINTS = 20
"""Most steps of a curve's grid."""


def describe_certificates(
    records: Sequence[Mapping[str, Any]], *, seed: int = 0
) -> dict[str, Any] | None:
    """Return curve, average radius and abstentions; ``None`` without certificates.

    Args:
        records: evaluated videos; those without a certificate are left out.
        seed: of the bootstrap.

    Returns:
        ``norm sigma alpha n0 n dims largest_radius``: what was asked; ``dims`` is ``None`` where
        videos differ. ``accuracy abstained``: rates. ``average_radius`` (ACR): mean of radius
        times correct. ``median_radius``: over correct certificates. ``curve``: for each ``radius``
        the rate and ``rms``, the same radius as a root mean square per value of the video.
    """
    certified = [record for record in records if outcomes.certificate(record) is not None]
    if not certified:
        return None
    radii = [outcomes.certified_radius(record) or 0.0 for record in certified]
    first = outcomes.certificate(certified[0]) or {}
    sizes = {(outcomes.certificate(record) or {})["dims"] for record in certified}
    dims = first["dims"] if len(sizes) == 1 else None
    largest = largest_radius(first["sigma"], first["n"], first["alpha"])
    mean = bootstrap_mean(radii, seed=seed)
    return {
        **{key: first[key] for key in ("norm", "sigma", "alpha", "n0", "n")},
        "dims": dims,
        "largest_radius": largest,
        "accuracy": definitions.evaluate("certified_accuracy", certified, seed=seed),
        "abstained": definitions.evaluate("certified_abstention_rate", certified, seed=seed),
        "average_radius": {
            "value": mean.value, "n": mean.n, "ci95": mean.ci95, "method": mean.method,
        },
        "median_radius": median([radius for radius in radii if radius > 0]),
        "curve": [_point(radii, radius, dims) for radius in radius_grid(largest)],
    }  # fmt: skip


def largest_radius(sigma: float, n: int, alpha: float) -> float:
    """Return the radius that unanimous draws certify; the method can give no larger one.

    The Clopper-Pearson bound of ``n`` of ``n`` is ``alpha ** (1 / n)``.
    """
    bound: float = alpha ** (1 / n)
    return sigma * NormalDist().inv_cdf(bound) if bound > 0.5 else 0.0


def radius_grid(largest: float) -> list[float]:
    """Return radii from 0 to at least ``largest`` in steps of 1, 2 or 5 times a power of ten.

    Example:
        >>> radius_grid(0.21)
        [0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.14, 0.16, 0.18, 0.2, 0.22]
    """
    if largest <= 0:
        return [0.0]
    power = math.floor(math.log10(largest)) - 2
    scale = 1
    while largest / (scale * 10.0**power) > MAX_POINTS:
        power, scale = (power + 1, 1) if scale == 5 else (power, {1: 2, 2: 5}[scale])
    count = math.ceil(largest / (scale * 10.0**power) - 1e-9)
    # Whole numbers times a power of ten: a grid without rounding noise.
    return [round(i * scale * 10.0**power, 12) for i in range(count + 1)]


def _point(radii: Sequence[float], radius: float, dims: int | None) -> dict[str, Any]:
    k = sum(found > radius for found in radii)
    share = rate(k, len(radii))
    return {
        "radius": radius,
        "rms": None if dims is None else radius / math.sqrt(dims),
        "value": share.value,
        "k": k,
        "n": share.n,
        "ci95": share.ci95,
        "method": share.method,
    }
