"""Correlations over models: against scipy, and where there is none."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("numpy")

from vcr_core.robustness.collect import collect
from vcr_core.robustness.proxies import correlation

PAIRS = [(0.8, 0.9), (0.7, 0.95), (0.6, 0.5), (0.9, 0.97), (0.5, 0.5), (0.7, 0.6)]


def test_against_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    found = correlation(PAIRS)
    first, second = zip(*PAIRS, strict=True)
    assert found["pearson"] == pytest.approx(stats.pearsonr(first, second).statistic)
    assert found["spearman"] == pytest.approx(stats.spearmanr(first, second).statistic)
    assert found["models"] == 6


def test_monotone_but_bent() -> None:
    found = correlation([(x, x**5) for x in (0.1, 0.2, 0.4, 0.7, 1.0)])
    assert found["spearman"] == pytest.approx(1)
    assert found["pearson"] < 1


def test_where_nothing_can_be_said() -> None:
    few = correlation([*PAIRS[:4], (None, 0.3)])
    assert few["pearson"] is None
    assert few["reason"] == "4 models, 5 are needed"
    same = correlation([(0.5, y) for _, y in PAIRS])
    assert same["spearman"] is None
    assert same["reason"] == "one side is the same for all models"


def test_over_models_without_a_defense(make: Any) -> None:
    runs = []
    for index in range(5):
        right = [i < 5 + index for i in range(10)]
        kept = [i < 2 + index for i in range(10)]
        runs.append(make.shift(1, right, kept, model=f"m{index}"))
        runs.append(make.corruption("a", 1, right, kept, model=f"m{index}"))
        pair = [(bool(one),) for one in right]
        runs.append(make.shift(1, pair, pair, model=f"m{index}", defense="median"))
    proxies = collect(runs).proxies["motion"]
    assert proxies["accuracy"]["models"] == 5
    assert proxies["accuracy"]["spearman"] == pytest.approx(1)
    # R under a is the NR of the same model here.
    assert proxies["types"]["a"]["pearson"] == pytest.approx(1)
