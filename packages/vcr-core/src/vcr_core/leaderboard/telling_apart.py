"""Which systems of a ranking differ by more than chance explains."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import combinations

from vcr_core.stats import mcnemar

LEVEL = 0.05
"""Of all tests of a ranking together."""


def told_apart(
    outcomes: Mapping[str, Mapping[str, bool]],
) -> tuple[dict[str, int], dict[str, int]]:
    """Return, by system, how many others are better, and how many worse, beyond chance.

    Exact McNemar tests of all pairs on the videos that both have, with the correction of Holm,
    Scand. J. Statist. 6 (1979).

    Args:
        outcomes: for every system, the videos with whether it was right.

    Example:
        >>> videos = [f"v{i}" for i in range(20)]
        >>> told_apart({"good": dict.fromkeys(videos, True), "bad": dict.fromkeys(videos, False)})
        ({'good': 0, 'bad': 1}, {'good': 1, 'bad': 0})
    """
    names = list(outcomes)
    bit = {
        video: 1 << place
        for place, video in enumerate(sorted({v for held in outcomes.values() for v in held}))
    }
    right = [sum(bit[v] for v, held in outcomes[name].items() if held) for name in names]
    known = [sum(bit[v] for v in outcomes[name]) for name in names]
    tests = []
    for i, j in combinations(range(len(names)), 2):
        shared = known[i] & known[j]
        only_i = (right[i] & ~right[j] & shared).bit_count()
        only_j = (right[j] & ~right[i] & shared).bit_count()
        tests.append((_p_value(only_i, only_j), i, j, only_i >= only_j))
    better = dict.fromkeys(names, 0)
    worse = dict.fromkeys(names, 0)
    for position, (p, i, j, i_wins) in enumerate(sorted(tests)):
        if p > LEVEL / (len(tests) - position):
            break
        winner, loser = (i, j) if i_wins else (j, i)
        worse[names[winner]] += 1
        better[names[loser]] += 1
    return better, worse


@lru_cache(maxsize=65536)
def _p_value(only_a: int, only_b: int) -> float:
    return mcnemar(only_a, only_b)
