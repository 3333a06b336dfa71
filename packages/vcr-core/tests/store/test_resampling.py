from __future__ import annotations

import builtins
import random
from typing import Any

import pytest
from vcr_core import resampling
from vcr_core.resampling import resampled_ratios, resampled_sums


def columns(n: int) -> list[list[float]]:
    generator = random.Random(n)
    return [
        [generator.gauss(3, 1e3) for _ in range(n)],
        [float(generator.random() < 0.3) for _ in range(n)],
        [1.0] * n,
        [0.1] * n,
    ]


@pytest.mark.parametrize("n", [1, 2, 17, 300])
def test_numpy_changes_no_bit(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numpy")
    found = resampled_sums(columns(n), 50, seed=7)
    ratios = resampled_ratios(*columns(n)[:2], 50, seed=7)

    def no_numpy(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "numpy":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", no_numpy)
    resampling._few_drawn.cache_clear()
    resampling._many_drawn.cache_clear()
    assert resampled_sums(columns(n), 50, seed=7) == found
    assert resampled_ratios(*columns(n)[:2], 50, seed=7) == ratios


def test_ratios_are_those_of_the_sums_in_order_without_empty_resamples() -> None:
    nums, dens = [1.0, 0.0, 3.0], [0.0, 0.0, 2.0]
    sums = resampled_sums([nums, dens], 40, seed=4)
    assert any(den == 0 for _, den in sums)
    assert resampled_ratios(nums, dens, 40, seed=4) == sorted(n / d for n, d in sums if d > 0)


def test_draws_come_from_the_seed_and_are_made_anew_for_another() -> None:
    values = [columns(40)[0]]
    assert resampled_sums(values, 20, seed=1) == resampled_sums(values, 20, seed=1)
    assert resampled_sums(values, 20, seed=1) != resampled_sums(values, 20, seed=2)


def test_draws_are_those_of_python() -> None:
    uniform = random.Random(5).random
    expected = [float(int(uniform() * 6)) for _ in range(6)]
    ((total,),) = resampled_sums([[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]], 1, seed=5)
    assert total == sum(expected)


def test_columns_are_resampled_together() -> None:
    values = columns(30)[0]
    for first, second in resampled_sums([values, [2 * v for v in values]], 20, seed=3):
        assert second == 2 * first


def test_resampling_leaves_the_ambient_generators_alone() -> None:
    np = pytest.importorskip("numpy")
    before, ambient = random.getstate(), np.random.get_state()[1].tolist()
    resampled_sums(columns(5), 3, seed=0)
    assert random.getstate() == before
    assert np.random.get_state()[1].tolist() == ambient
