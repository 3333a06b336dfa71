from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vcr_core.power import detectable, holm, mcnemar_power, videos_needed
from vcr_core.stats import mcnemar


def test_power_by_hand():
    # Everything disagrees in one direction: 5 videos give p = 0.0625, 6 give 0.03125.
    assert mcnemar_power(5, 0.0, 1.0) == 0.0
    assert mcnemar_power(6, 0.0, 1.0) == 1.0
    # All 6 of 6 videos have to disagree, and all in one direction.
    assert mcnemar_power(6, 0.2, 0.4) == pytest.approx(0.2**6 + 0.4**6, rel=1e-6)
    assert mcnemar_power(50, 0.0, 0.0) == 0.0


def test_power_agrees_with_the_definition():
    binom = pytest.importorskip("scipy.stats").binom
    n, only_a, only_b = 40, 0.1, 0.3
    expected = sum(
        binom.pmf(d, n, only_a + only_b) * binom.pmf(k, d, only_a / (only_a + only_b))
        for d in range(n + 1)
        for k in range(d + 1)
        if mcnemar(k, d - k) <= 0.05
    )
    assert mcnemar_power(n, only_a, only_b) == pytest.approx(expected, abs=1e-7)


def test_the_necessary_videos_find_the_difference_in_a_simulation():
    only_a, only_b = 0.05, 0.2
    n = videos_needed(only_a, only_b)
    assert n is not None
    assert mcnemar_power(n, only_a, only_b) >= 0.8
    generator = random.Random(1)
    found, trials = 0, 1500
    for _ in range(trials):
        draws = [generator.random() for _ in range(n)]
        a = sum(draw < only_a for draw in draws)
        b = sum(only_a <= draw < only_a + only_b for draw in draws)
        found += mcnemar(a, b) <= 0.05
    # Standard error 0.01.
    assert found / trials == pytest.approx(mcnemar_power(n, only_a, only_b), abs=0.04)


def test_necessary_videos_follow_the_approximation():
    # Connor (1987): ((1.96 sqrt(0.2) + 0.8416 sqrt(0.2 - 0.01)) / 0.1)^2 = 155, and the exact test
    # is conservative.
    n = videos_needed(0.05, 0.15)
    assert n is not None
    assert 155 <= n <= 180


def test_smaller_differences_need_more_videos():
    counts = [videos_needed(0.1, 0.1 + d) for d in (0.2, 0.1, 0.05, 0.001)]
    assert counts == sorted(counts)
    # Beyond the limit of the exact test.
    assert counts[-1] > 1_000_000


def test_no_difference_is_never_found():
    assert videos_needed(0.1, 0.1) is None
    assert videos_needed(0.0, 0.0) is None


def test_a_given_difference_keeps_the_observed_disagreement():
    only_a, only_b = detectable(0.05, 0.1, 0.2)
    assert (only_b - only_a, only_a + only_b) == pytest.approx((0.05, 0.3))
    # Two systems that differ by 5 points cannot disagree on less than 5 %.
    assert detectable(0.05, 0.0, 0.0) == (0.0, 0.05)
    assert detectable(-0.05, 0.0, 0.0) == (0.05, 0.0)
    with pytest.raises(ValueError, match="no difference"):
        detectable(1.5, 0.1, 0.1)


def test_impossible_probabilities_are_refused():
    for n, a, b in ((-1, 0.1, 0.1), (5, -0.1, 0.1), (5, 0.6, 0.6)):
        with pytest.raises(ValueError, match="no count and two"):
            mcnemar_power(n, a, b)


def test_holm_by_hand():
    # Sorted: 0.01·4, 0.02·3, 0.03·2, 0.9·1, each at least as large as the one before.
    assert holm([0.03, 0.01, 0.9, 0.02]) == pytest.approx([0.06, 0.04, 0.9, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_is_between_the_p_value_and_bonferroni(values):
    adjusted = holm(values)
    assert all(
        p <= q <= min(1, len(values) * max(values)) + 1e-12
        for p, q in zip(values, adjusted, strict=True)
    )
    order = sorted(range(len(values)), key=lambda i: values[i])
    assert [adjusted[i] for i in order] == sorted(adjusted)
