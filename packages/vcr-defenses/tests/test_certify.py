"""The statistics of randomized smoothing against printed and independent numbers."""

from __future__ import annotations

import math

import pytest
from vcr_defenses.certify import (
    abstains,
    binomial_p_value,
    certificate,
    certified_radius,
    lower_bound,
)

# count, n, alpha, lower bound, radius over sigma (None: nothing can be certified).
TABLE = [
    (100, 100, 0.001, 0.933254, 1.5005),
    (99, 100, 0.001, 0.911373, 1.3493),
    (60, 100, 0.001, 0.440984, None),
    (950, 1000, 0.001, 0.925047, 1.4399),
    (1000, 1000, 0.001, 0.993116, 2.4633),
    (99000, 100000, 0.001, 0.988989, 2.2900),
    (100000, 100000, 0.001, 0.999931, 3.8115),
    (10, 10, 0.05, 0.741134, 0.6468),
]


@pytest.mark.golden
@pytest.mark.parametrize(("count", "n", "alpha", "bound", "radius"), TABLE)
def test_bounds_and_radii(count, n, alpha, bound, radius):
    found = lower_bound(count, n, alpha)
    assert found == pytest.approx(bound, abs=1e-6)
    given = certificate([0, 1], [n - count, count], sigma=0.25, alpha=alpha, dims=7)
    assert given["p_lower"] == found
    assert (given["n0"], given["n"], given["count"], given["dims"]) == (1, n, count, 7)
    if radius is None:
        assert (given["class"], given["radius"]) == (None, 0.0)
    else:
        assert given["class"] == 1
        assert given["radius"] / 0.25 == pytest.approx(radius, abs=1e-4)


@pytest.mark.golden
@pytest.mark.parametrize(
    ("first", "second", "p"),
    [(60, 40, 0.05689), (70, 30, 0.00008), (9, 1, 0.02148), (10, 0, 0.00195)],
)
def test_p_values(first, second, p):
    assert binomial_p_value(first, second) == pytest.approx(p, abs=5e-6)
    assert binomial_p_value(second, first) == binomial_p_value(first, second)


def test_p_values_are_sums_of_binomial_terms():
    for n in (1, 2, 11, 37, 100):
        for first in range(n + 1):
            most = max(first, n - first)
            tail = sum(math.comb(n, k) for k in range(most, n + 1)) / 2**n
            assert binomial_p_value(first, n - first) == pytest.approx(min(1.0, 2 * tail))


def test_a_bound_is_one_sided():
    # As likely to be exceeded from below as alpha says: P(X >= count | p = bound) = alpha.
    bound = lower_bound(9, 12, 0.05)
    tail = sum(math.comb(12, k) * bound**k * (1 - bound) ** (12 - k) for k in range(9, 13))
    assert tail == pytest.approx(0.05, abs=1e-9)
    assert lower_bound(0, 12, 0.05) == 0.0


def test_the_radius_grows_with_n_and_with_the_count():
    by_n = [lower_bound(9 * n // 10, n, 0.001) for n in (100, 1000, 10_000, 100_000)]
    by_count = [lower_bound(count, 1000, 0.001) for count in range(500, 1001, 50)]
    for bounds in (by_n, by_count):
        radii = [certified_radius(0.5, bound) for bound in bounds]
        assert radii == sorted(radii)
        assert radii[0] < radii[-1]
    # The limit is the radius of the true probability, from below.
    assert certified_radius(0.5, by_n[-1]) < certified_radius(0.5, 0.9)


def test_half_certifies_nothing():
    assert certified_radius(1.0, 0.5) == 0.0
    assert certified_radius(1.0, 0.2) == 0.0


def test_votes_that_could_be_chance():
    assert abstains([60, 40], 0.001)
    assert not abstains([70, 30], 0.001)
    assert abstains([5, 5], 0.001)
    # Only the two most frequent classes count.
    assert not abstains([1, 70, 30, 5], 0.001)
    # Eleven votes for one class are enough at 0.001, ten are not.
    assert not abstains([11], 0.001)
    assert abstains([10, 0], 0.001)


def test_the_class_is_chosen_on_other_draws_than_those_that_bound_it():
    given = certificate([3, 7], [95, 5], sigma=0.1, alpha=0.001, dims=1)
    assert (given["class"], given["radius"], given["count"]) == (None, 0.0, 5)
    assert certificate([5, 5], [95, 5], sigma=0.1, alpha=0.001, dims=1)["class"] == 0


@pytest.mark.parametrize(("count", "n", "alpha"), [(5, 4, 0.1), (-1, 4, 0.1), (1, 4, 0.5)])
def test_impossible_counts_are_refused(count, n, alpha):
    with pytest.raises(ValueError, match=r"proportion|alpha"):
        lower_bound(count, n, alpha)
    with pytest.raises(ValueError, match="negative"):
        binomial_p_value(-1, 3)


def test_counts_agree_with_scipy():
    stats = pytest.importorskip("scipy.stats")
    for count, n in ((52, 100), (731, 1000), (999, 1000), (51, 101)):
        expected = stats.binomtest(count, n, 0.5).pvalue
        assert binomial_p_value(count, n - count) == pytest.approx(expected, rel=1e-9)
        quantile = stats.beta.ppf(0.001, count, n - count + 1)
        assert lower_bound(count, n, 0.001) == pytest.approx(quantile, rel=1e-9)
