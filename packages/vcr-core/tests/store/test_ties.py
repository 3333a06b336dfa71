from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vcr_core.stats import mcnemar
from vcr_core.ties import distinct_pairs, tie_letters


def holds(right: int, total: int = 40) -> dict[str, bool]:
    return {f"v{i}": i < right for i in range(total)}


def test_letters_tell_apart_what_tests_tell_apart() -> None:
    # 40 against 20 and 20 against 2 differ clearly; 22 is not told apart from 20.
    assert tie_letters([holds(40), holds(22), holds(20), holds(2)]) == ("a", "b", "b", "c")


def test_a_system_between_two_shares_a_letter_with_both() -> None:
    first, middle, last = holds(24), holds(20), holds(14)
    assert mcnemar(10, 0) < 0.05 / 3 < mcnemar(4, 0)
    assert tie_letters([first, middle, last]) == ("a", "ab", "b")


def test_systems_without_shared_videos_cannot_be_told_apart() -> None:
    other = {f"w{i}": False for i in range(40)}
    assert tie_letters([holds(40), other]) == ("a", "a")


def test_holm_stops_at_the_first_test_that_fails() -> None:
    pairs = distinct_pairs([holds(20), holds(14), holds(13)])
    # 0.016 for 20 against 13 passes the level of the first of three tests, 0.031 not the second.
    assert pairs == [(0, 2)]
    assert mcnemar(7, 0) == pytest.approx(2 / 128)


def test_no_system_and_one_system() -> None:
    assert tie_letters([]) == ()
    assert tie_letters([holds(3)]) == ("a",)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=9))
def test_sharing_a_letter_means_no_test_tells_them_apart(rights: list[int]) -> None:
    systems = [holds(right, 60) for right in sorted(rights, reverse=True)]
    letters = [set(text) for text in tie_letters(systems)]
    apart = set(distinct_pairs(systems))
    for pair in combinations(range(len(systems)), 2):
        assert (not letters[pair[0]] & letters[pair[1]]) == (pair in apart)


def test_large_counts_are_quick_and_right() -> None:
    assert mcnemar(5000, 5000) == 1.0
    assert mcnemar(4800, 5200) == pytest.approx(6.64e-5, rel=0.01)
