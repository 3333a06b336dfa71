"""Resampled AUROC and detection rates: the same with numpy and without."""

from __future__ import annotations

import builtins
import random

import pytest
from vcr_core import separation as module
from vcr_core.separation import Scores, separation


def scored(count, draws, seed=0):
    generator = random.Random(seed)

    def some(low, high):
        return tuple(generator.randint(low, high) / 8 for _ in range(draws))

    return [Scores(some(0, 9), some(3, 12) if i % 3 else ()) for i in range(count)]


@pytest.fixture
def without_numpy(monkeypatch):
    real = builtins.__import__

    def fake(name, *args, **kwargs):
        if name == "numpy":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    return lambda: monkeypatch.setattr(builtins, "__import__", fake)


@pytest.mark.parametrize("draws", [1, 3])
def test_the_same_bits_without_numpy(without_numpy, monkeypatch, draws):
    monkeypatch.setattr(module, "MAX_WORK", 1)
    pytest.importorskip("numpy")
    videos = scored(23, draws)
    fast = separation(videos, seed=4)
    without_numpy()
    assert separation(videos, seed=4) == fast
    assert [len(drawn) for _, drawn in fast.values()] == [module.LEAST_RESAMPLES] * 2


def test_scores_that_are_all_different_take_the_short_way(without_numpy):
    videos = [Scores((i / 7,), (i / 7 + 0.5,)) for i in range(12)]
    fast = separation(videos)
    without_numpy()
    assert separation(videos) == fast


def test_blocks_do_not_matter(monkeypatch):
    videos = scored(30, 2)
    whole = separation(videos)
    monkeypatch.setattr(module, "_BLOCK", 1000)
    assert separation(videos) == whole


def test_a_resample_without_a_group_has_no_value():
    for value, drawn in separation([Scores((0.0,), ()), Scores((), (1.0,))]).values():
        assert value == 1.0
        assert set(drawn) == {1.0, None}
    none = {"auroc": (None, []), "tpr": (None, [])}
    assert separation([Scores((0.0,), ())]) == none
    assert separation([]) == none
