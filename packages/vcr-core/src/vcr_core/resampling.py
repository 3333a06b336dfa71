"""Sums over resampled videos, for bootstrap intervals: the same bits with numpy and without."""

from __future__ import annotations

import random
from functools import lru_cache, reduce
from itertools import repeat
from operator import add
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

# So many resamples are drawn, and so many videos added up, at a time: their numbers stay in the
# second cache of a processor, and the latter in memory that is not asked of the system anew.
_BLOCK = 64
_ROWS = 8


def resampled_sums(
    columns: Sequence[Sequence[float]], resamples: int, seed: int
) -> list[tuple[float, ...]]:
    """Return, for every resample of the videos, the sum of every column.

    All columns are resampled together. The order of additions is that of the draws, so the result
    is the same with numpy, which is some twenty times faster, and on every version of Python,
    whose ``sum`` has changed.

    Args:
        columns: one value a video each, equally long.
        resamples: how many resamples.
        seed: the same seed gives the same draws for the same number of videos.

    Example:
        >>> resampled_sums([[1.0, 1.0]], 2, seed=0)
        [(2.0,), (2.0,)]
    """
    n = len(columns[0])
    try:
        drawn = _drawn_array(n, resamples, seed)
    except ImportError:
        return [
            tuple(reduce(add, map(column.__getitem__, picked)) for column in columns)
            for picked in _draws(n, resamples, seed)
        ]
    return list(zip(*(_sums(column, drawn).tolist() for column in columns), strict=True))


def resampled_ratios(
    nums: Sequence[float], dens: Sequence[float], resamples: int, seed: int
) -> list[float]:
    """Return ``sum(nums) / sum(dens)`` of every resample with ``sum(dens) > 0``, smallest first.

    Arguments and sums are those of :func:`resampled_sums`.

    Example:
        >>> resampled_ratios([1.0, 1.0], [2.0, 2.0], 2, seed=0)
        [0.5, 0.5]
    """
    try:
        drawn = _drawn_array(len(nums), resamples, seed)
    except ImportError:
        sums = resampled_sums([nums, dens], resamples, seed)
        return sorted(num / den for num, den in sums if den > 0)
    num, den = _sums(nums, drawn), _sums(dens, drawn)
    used = den > 0
    ratios = num[used] / den[used]
    ratios.sort()
    return cast("list[float]", ratios.tolist())


def resampled_times(n: int, resamples: int, seed: int) -> Sequence[Sequence[int]]:
    """Return how often each video is in each resample: ``[resamples][n]``.

    An array with numpy, lists without; the draws are those of :func:`resampled_sums`.

    Example:
        >>> [sum(row) for row in resampled_times(3, 2, seed=0)] == [3, 3]
        True
    """
    try:
        import numpy as np
    except ImportError:
        counted = [[0] * n for _ in range(resamples)]
        for row, picked in zip(counted, _draws(n, resamples, seed), strict=True):
            for video in picked:
                row[video] += 1
        return counted
    place = _drawn_array(n, resamples, seed) + n * np.arange(resamples, dtype=np.int64)
    times = np.bincount(place.ravel(), minlength=n * resamples).reshape(resamples, n)
    return cast("Sequence[Sequence[int]]", times)


def _draws(n: int, resamples: int, seed: int) -> list[list[int]]:
    # A private generator: the ambient one belongs to others. ``random()`` repeats on every Python
    # version; ``choices`` promises no such thing.
    uniform = random.Random(seed).random  # noqa: S311
    return [[int(uniform() * n) for _ in repeat(None, n)] for _ in range(resamples)]


def _drawn_array(n: int, resamples: int, seed: int) -> NDArray[np.int32]:
    """Return :func:`_draws` transposed: ``[n, resamples]``. All numbers of a run share them."""
    return (_few_drawn if n <= _FEW else _many_drawn)(n, resamples, seed)


def _draw_array(n: int, resamples: int, seed: int) -> NDArray[np.int32]:
    import numpy as np

    # Both generators are MT19937 with the same doubles, once numpy's has the state of Python's.
    _, state, _ = random.Random(seed).getstate()  # noqa: S311
    generator = np.random.RandomState()
    keys = np.array(state[:-1], dtype=np.uint32)
    generator.set_state(("MT19937", keys, state[-1], 0, 0.0))
    drawn = np.empty((n, resamples), dtype=np.int32)
    for start in range(0, resamples, _BLOCK):
        uniform = generator.random_sample((min(_BLOCK, resamples - start), n))
        uniform *= n
        drawn[:, start : start + _BLOCK] = uniform.T
    return drawn


# Many small runs have many different numbers of videos; a few large ones would fill the memory.
_FEW = 100
_few_drawn = lru_cache(maxsize=64)(_draw_array)
_many_drawn = lru_cache(maxsize=4)(_draw_array)


def _sums(column: Sequence[float], drawn: NDArray[np.int32]) -> NDArray[Any]:
    import numpy as np

    values = np.asarray(column, dtype=np.float64)
    if values.size and (values == values[0]).all() and values[0] == int(values[0]):
        # Whole numbers add up without rounding.
        return np.full(drawn.shape[1], values[0] * len(values))
    total = np.zeros(drawn.shape[1])
    # Some rows at a time, into the same memory: what numpy would allocate for each row, or for all
    # of them, takes longer than the additions.
    places = np.empty((_ROWS, drawn.shape[1]), dtype=np.intp)
    picked = np.empty((_ROWS, drawn.shape[1]))
    for start in range(0, len(drawn), _ROWS):
        rows = drawn[start : start + _ROWS]
        places[: len(rows)] = rows
        # "clip" only because numpy buffers the output otherwise; every place is within bounds.
        np.take(values, places[: len(rows)], out=picked[: len(rows)], mode="clip")
        for row in picked[: len(rows)]:
            total += row
    return total
