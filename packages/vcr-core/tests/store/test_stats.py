from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vcr_core import stats
from vcr_core.stats import Term


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        (70, 100, 0.6042, 0.7811),
        (93, 100, 0.8625, 0.9657),
        (5, 10, 0.2366, 0.7634),
        (0, 20, 0.0, 0.1611),
        (20, 20, 0.8389, 1.0),
    ],
)
def test_wilson_published_values(k, n, low, high):
    assert stats.wilson(k, n) == pytest.approx((low, high), abs=5e-5)


def test_wilson_ends_are_exact():
    assert stats.wilson(0, 7)[0] == 0.0
    assert stats.wilson(7, 7)[1] == 1.0


@pytest.mark.parametrize(("k", "n"), [(1, 0), (-1, 5), (6, 5)])
def test_wilson_refuses_what_is_no_proportion(k, n):
    with pytest.raises(ValueError, match="no proportion"):
        stats.wilson(k, n)


def test_clopper_pearson_closed_forms():
    # k = 0 and k = n have closed forms; 1 - 0.025**(1/20).
    assert stats.clopper_pearson(0, 20) == pytest.approx((0, 1 - 0.025 ** (1 / 20)), abs=1e-12)
    assert stats.clopper_pearson(20, 20) == pytest.approx((0.025 ** (1 / 20), 1), abs=1e-12)


def test_clopper_pearson_known_values():
    # Standard table values (exact binomial interval of 5/10 and 1/10).
    assert stats.clopper_pearson(5, 10) == pytest.approx((0.187086, 0.812914), abs=1e-6)
    assert stats.clopper_pearson(1, 10) == pytest.approx((0.002529, 0.445016), abs=1e-6)


def test_clopper_pearson_one_sided_bound_of_certification():
    # Lower bound of 60/100 at alpha = 0.001, as used when smoothing is certified.
    assert stats.clopper_pearson(60, 100, alpha=0.002)[0] == pytest.approx(0.440984, abs=1e-6)


def test_clopper_pearson_inverts_the_binomial_tail():
    low, _ = stats.clopper_pearson(7, 30)
    tail = math.fsum(math.comb(30, i) * low**i * (1 - low) ** (30 - i) for i in range(7, 31))
    assert tail == pytest.approx(0.025, abs=1e-12)


def test_clopper_pearson_large_counts():
    low, high = stats.clopper_pearson(99_000, 100_000)
    assert low < 0.99 < high
    assert high - low < 0.0013


def test_clopper_pearson_refuses_bad_level():
    with pytest.raises(ValueError, match="alpha"):
        stats.clopper_pearson(1, 2, alpha=1.0)


def test_mcnemar_by_hand():
    # 2 · (C(10,0) + C(10,1)) / 2^10
    assert stats.mcnemar(1, 9) == pytest.approx(22 / 1024, abs=1e-15)
    assert stats.mcnemar(9, 1) == stats.mcnemar(1, 9)
    assert stats.mcnemar(0, 5) == pytest.approx(2 / 32)
    assert stats.mcnemar(0, 0) == 1.0
    assert stats.mcnemar(5, 5) == 1.0


def test_mcnemar_large_counts_do_not_overflow():
    assert 0 < stats.mcnemar(900, 1100) < 1e-4


def test_mcnemar_refuses_negative_counts():
    with pytest.raises(ValueError, match="negative"):
        stats.mcnemar(-1, 3)


def test_discordant_uses_shared_videos_only():
    a = {"u": True, "v": False, "w": True}
    b = {"u": False, "v": True, "x": True}
    assert stats.discordant(a, b) == (1, 1)


def test_rate_without_denominator_has_no_value():
    assert stats.rate(0, 0).value is None
    assert stats.rate(0, 0).ci95 is None


def test_bootstrap_mean_is_seeded_and_brackets_the_mean():
    values = [i**1.5 for i in range(30)]
    first = stats.bootstrap_mean(values, seed=3)
    assert first == stats.bootstrap_mean(values, seed=3)
    assert first.ci95 != stats.bootstrap_mean(values, seed=4).ci95
    assert first.value == pytest.approx(sum(values) / 30)
    assert first.low < first.value < first.high


def test_bootstrap_matches_theory():
    # Mean of 400 fair coins: standard error 0.025, so 95 % is ± 0.049 (resampling noise 10 %).
    result = stats.bootstrap_mean([0.0, 1.0] * 200)
    assert result.high - result.low == pytest.approx(2 * 1.96 * 0.025, rel=0.1)


def test_bootstrap_of_equal_values_has_no_width():
    assert stats.bootstrap_mean([2.5] * 9).ci95 == [2.5, 2.5]


def test_bootstrap_of_nothing():
    assert stats.bootstrap_mean([]).value is None


def test_large_samples_use_the_normal_interval_and_agree():
    values = [float(i % 7) for i in range(stats.MAX_BOOTSTRAP + 1)]
    normal, drawn = stats.bootstrap_mean(values), stats.bootstrap_mean(values[:-1])
    assert (normal.method, drawn.method) == ("normal", "bootstrap")
    assert normal.ci95 == pytest.approx(drawn.ci95, abs=0.01)


def test_large_ratio_and_paired_difference_agree_with_bootstrap():
    def terms(n, shift):
        return {str(i): Term(float((i * 7 + shift) % 5 == 0), float(i % 3 != 0)) for i in range(n)}

    n = stats.MAX_BOOTSTRAP
    a, b = terms(n + 3, 0), terms(n + 3, 1)
    # Numerators without their denominators would be no rate.
    a = {k: Term(t.num * t.den, t.den) for k, t in a.items()}
    b = {k: Term(t.num * t.den, t.den) for k, t in b.items()}
    large = stats.paired_difference(a, b)
    small = stats.paired_difference({k: a[k] for k in list(a)[:n]}, {k: b[k] for k in list(b)[:n]})
    assert (large.method, small.method) == ("normal", "bootstrap")
    assert large.ci95 == pytest.approx(small.ci95, abs=0.01)
    ratio = stats.bootstrap_ratio(list(a.values()))
    assert ratio.method == "normal"
    assert ratio.low < ratio.value < ratio.high


def test_clusters_average_within_the_video_first():
    terms = stats.cluster_terms([("v", 1.0), ("v", 0.0), ("v", 0.0), ("v", 0.0), ("w", 1.0)])
    assert [term.num for term in terms] == [0.25, 1.0]
    # 0.625, not the pooled 0.4.
    assert stats.bootstrap_ratio(terms).value == pytest.approx(0.625)


def test_clustering_widens_the_interval():
    # 20 videos, 8 repeats each that all agree: repeats carry no information.
    values = [(v, float(v % 2)) for v in range(20) for _ in range(8)]
    clustered = stats.bootstrap_ratio(stats.cluster_terms(values))
    pooled = stats.bootstrap_mean([value for _, value in values])
    assert clustered.high - clustered.low > 2 * (pooled.high - pooled.low)


def test_paired_difference_by_hand():
    a = {"u": Term(1.0), "v": Term(0.0), "w": Term(1.0), "only-a": Term(1.0)}
    b = {"u": Term(0.0), "v": Term(0.0), "w": Term(1.0), "only-b": Term(1.0)}
    result = stats.paired_difference(a, b)
    assert result.value == pytest.approx(-1 / 3)
    assert result.n == 3


def test_pairing_is_tighter_than_two_intervals():
    # Two systems that agree on every video differ by exactly 0.
    terms = {str(i): Term(float(i % 2)) for i in range(40)}
    assert stats.paired_difference(terms, terms).ci95 == [0.0, 0.0]


def test_paired_difference_without_denominator():
    assert stats.paired_difference({"u": Term(0, 0)}, {"u": Term(1, 1)}).value is None


def test_median():
    assert stats.median([]) is None
    assert stats.median([3, 1, 2]) == 2
    assert stats.median([4, 1, 2, 3]) == 2.5


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_intervals_hold_the_rate(counts):
    k, n = counts
    for low, high in (stats.wilson(k, n), stats.clopper_pearson(k, n)):
        assert 0 <= low <= k / n <= high <= 1
        assert low < high


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_intervals_are_symmetric(counts):
    k, n = counts
    for method in (stats.wilson, stats.clopper_pearson):
        low, high = method(k, n)
        mirrored = method(n - k, n)
        assert (1 - high, 1 - low) == pytest.approx(mirrored, abs=1e-9)


def test_paired_ratio_by_hand():
    a = {"u": Term(2.0), "v": Term(4.0), "w": Term(9.0)}
    b = {"u": Term(3.0), "v": Term(6.0)}
    result = stats.paired_ratio(a, b)
    assert result.value == pytest.approx(1.5)
    # The ratio is the same for every video, so it is for every resample.
    assert result.ci95 == pytest.approx([1.5, 1.5])
    assert result.n == 2


def test_paired_ratio_needs_something_to_divide_by():
    zero = {"u": Term(0.0)}
    assert stats.paired_ratio(zero, {"u": Term(1.0)}).value is None


def test_large_paired_ratio_agrees_with_bootstrap():
    n = stats.MAX_BOOTSTRAP
    generator = random.Random(3)
    a = {str(i): Term(1 + generator.random()) for i in range(n + 1)}
    b = {key: Term(1.2 * term.num + 0.3 * generator.random()) for key, term in a.items()}
    large = stats.paired_ratio(a, b)
    small = stats.paired_ratio({k: a[k] for k in list(a)[:n]}, b)
    assert (large.method, small.method) == ("normal", "bootstrap")
    assert large.ci95 == pytest.approx(small.ci95, abs=0.002)
