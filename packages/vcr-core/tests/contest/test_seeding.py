"""Seeds depend on four values and on nothing else; ambient random state is left alone."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from vcr_core.randomness import VideoRandom
from vcr_core.seeding import derive_seed, isolated_random_state, subset_order


def test_a_seed_is_pinned() -> None:
    assert derive_seed(42, "video", "attack", 0) == 5449593858482127020
    assert derive_seed(42, "video", "eval", 3) == 9156392636948901493


@given(st.text(), st.text(), st.integers(0, 2**31), st.integers(0, 99))
def test_parts_do_not_run_into_each_other(a: str, b: str, seed: int, repeat: int) -> None:
    assert 0 <= derive_seed(seed, a, b, repeat) < 2**63
    if a and b:
        assert derive_seed(seed, a + b, "", repeat) != derive_seed(seed, a, b, repeat)


def test_eight_videos_are_a_prefix_of_a_hundred_whatever_the_listing() -> None:
    ids = [f"v{i}" for i in range(100)]
    order = subset_order(ids, 1)
    assert subset_order(reversed(ids), 1) == order
    without = [i for i in order if i != "v7"]
    assert subset_order([i for i in ids if i != "v7"], 1) == without


def test_ambient_state_is_restored_and_seeded() -> None:
    random.seed(3), np.random.seed(3), torch.manual_seed(3)
    expected = (random.random(), np.random.rand(), torch.rand(1).item())
    random.seed(3), np.random.seed(3), torch.manual_seed(3)
    with isolated_random_state(9):
        inside = (random.random(), np.random.rand(), torch.rand(1).item())
    assert (random.random(), np.random.rand(), torch.rand(1).item()) == expected
    with isolated_random_state(9):
        assert (random.random(), np.random.rand(), torch.rand(1).item()) == inside


def test_ambient_state_is_restored_after_an_exception() -> None:
    state = torch.get_rng_state()

    def fail() -> None:
        with isolated_random_state(1):
            torch.rand(1)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert torch.equal(torch.get_rng_state(), state)


class TestVideoRandom:
    def test_a_draw_does_not_depend_on_neighbours(self) -> None:
        together = VideoRandom([5, 6, 7]).normal(4)
        assert torch.equal(together[1], VideoRandom([6]).normal(4)[0])

    def test_rows_advance_only_their_own_generators(self) -> None:
        random = VideoRandom([1, 2])
        random.uniform(3, rows=torch.tensor([0]))
        assert torch.equal(random.uniform(2)[1], VideoRandom([2]).uniform(2)[0])

    def test_no_rows_give_an_empty_draw(self) -> None:
        assert VideoRandom([1]).uniform(2, 3, rows=torch.tensor([], dtype=torch.int64)).shape == (
            0, 2, 3,
        )  # fmt: skip

    def test_children_are_independent_and_leave_the_parent_alone(self) -> None:
        random = VideoRandom([1])
        a, b = random.child("a").uniform(4), random.child("b").uniform(4)
        assert not torch.equal(a, b)
        assert torch.equal(random.uniform(4), VideoRandom([1]).uniform(4))
        assert torch.equal(a, VideoRandom([1]).child("a").uniform(4))

    def test_ranges(self) -> None:
        random = VideoRandom([1, 2])
        drawn = random.uniform(100, low=-2, high=3)
        assert drawn.min() >= -2
        assert drawn.max() < 3
        assert set(random.signs(50).unique().tolist()) == {-1.0, 1.0}
        assert sorted(random.permutation(6)[1].tolist()) == list(range(6))
