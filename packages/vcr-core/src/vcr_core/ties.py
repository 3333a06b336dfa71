"""Which systems of a ranking cannot be told apart."""

from __future__ import annotations

from itertools import combinations
from string import ascii_lowercase
from typing import TYPE_CHECKING

from vcr_core.stats import discordant, mcnemar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LEVEL = 0.05


def tie_letters(holds: Sequence[Mapping[str, bool]], *, level: float = LEVEL) -> tuple[str, ...]:
    """Return letters such that two systems share one exactly if no test tells them apart.

    Every pair is compared by McNemar's exact test on the videos that both have; the p-values are
    corrected for the number of pairs (Holm, Scand. J. Statist. 6, 1979). Letters by insertion and
    absorption (Piepho, J. Comput. Graph. Statist. 13, 2004).

    Args:
        holds: for every system, best first, which videos it gets right.
        level: chance that any two systems that are equally good get no common letter.

    Example:
        >>> good, bad = {str(i): True for i in range(20)}, {str(i): False for i in range(20)}
        >>> tie_letters([good, good, bad])
        ('a', 'a', 'b')
    """
    groups = [set(range(len(holds)))] if holds else []
    for first, second in distinct_pairs(holds, level=level):
        for group in [g for g in groups if {first, second} <= g]:
            groups.remove(group)
            groups += [group - {first}, group - {second}]
        groups = [
            group
            for i, group in enumerate(groups)
            if not any(
                group < other or (group == other and j < i) for j, other in enumerate(groups)
            )
        ]
    groups.sort(key=lambda group: sorted(group))
    return tuple(
        "".join(_letter(i) for i, group in enumerate(groups) if system in group)
        for system in range(len(holds))
    )


def distinct_pairs(
    holds: Sequence[Mapping[str, bool]], *, level: float = LEVEL
) -> list[tuple[int, int]]:
    """Return the pairs of systems that differ, by Holm's step-down procedure."""
    pairs = list(combinations(range(len(holds)), 2))
    tested = sorted((mcnemar(*discordant(holds[a], holds[b])), (a, b)) for a, b in pairs)
    found = []
    for number, (p, pair) in enumerate(tested):
        if p > level / (len(tested) - number):
            break
        found.append(pair)
    return sorted(found)


def _letter(number: int) -> str:
    """Return ``a … z``, then ``a1 … z1`` and so on."""
    round_, place = divmod(number, len(ascii_lowercase))
    return ascii_lowercase[place] + (str(round_) if round_ else "")
