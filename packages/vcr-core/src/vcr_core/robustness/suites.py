"""Which published lists the types of a ground make up: means are within one, never over several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vcr_core.robustness.places import NO_SUITE, Suite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vcr_core.robustness.systems import Ground, Kind


@dataclass(frozen=True, slots=True)
class Part:
    """The types of a ground that belong to one list.

    Attributes:
        suite: the list.
        kinds: its types that any system has.
        levels: severities that any system has for them; empty where types have none.
    """

    suite: Suite
    kinds: tuple[Kind, ...]
    levels: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        """Whether nothing of the list is missing."""
        return self.has_all_types and (not self.levels or len(self.levels) >= self.suite.severities)

    @property
    def has_all_types(self) -> bool:
        """Whether every type of the list is there."""
        return bool(self.suite.name) and len(self.kinds) >= self.suite.types

    @property
    def extent(self) -> str:
        """What of the list is there, in words; nothing where all of it is.

        Example:
            >>> Part(Suite("gu10", "1", 10), (("hue", ()), ("fog", ())), (1, 3)).extent
            '2 of 10 types, severities 1, 3'
        """
        words = []
        if not self.suite.name:
            words.append(f"{len(self.kinds)} type{'s' if len(self.kinds) != 1 else ''}")
        elif not self.has_all_types:
            words.append(f"{len(self.kinds)} of {self.suite.types} types")
        if self.levels and len(self.levels) < self.suite.severities:
            one = len(self.levels) == 1
            words.append(f"severit{'y' if one else 'ies'} {', '.join(map(str, self.levels))}")
        return ", ".join(words)

    @property
    def title(self) -> str:
        """Name and extent."""
        name = self.suite.name or "no suite"
        return f"{name} ({self.extent})" if self.extent else name


def parts(ground: Ground) -> list[Part]:
    """Return the lists to aggregate over.

    Those of which every type is there; then, for types in none of them, the list that has most of
    these; types in no list are put together last.
    """
    members: dict[Suite, list[Kind]] = {}
    for kind in ground.kinds:
        suites = {s for (k, _), place in ground.places.items() if k == kind for s in place.suites}
        for suite in suites:
            members.setdefault(suite, []).append(kind)
    found = [_part(ground, suite, kinds) for suite, kinds in sorted(members.items())]
    chosen = [part for part in found if part.has_all_types]
    covered = {kind for part in chosen for kind in part.kinds}
    others = [part for part in found if not part.has_all_types]
    while others:
        best = max(others, key=lambda part: len(set(part.kinds) - covered))
        if not set(best.kinds) - covered:
            break
        chosen.append(best)
        covered |= set(best.kinds)
        others.remove(best)
    rest = [kind for kind in ground.kinds if kind not in covered]
    return [*chosen, *([_part(ground, NO_SUITE, rest)] if rest else [])]


def larger(part: Part, others: Sequence[Part]) -> str:
    """Return the name of a list that has all types of ``part`` and more, or ``""``."""
    found = [o for o in others if o.suite.name and set(part.kinds) < set(o.kinds)]
    return max(found, key=lambda o: len(o.kinds)).suite.name if found else ""


def _part(ground: Ground, suite: Suite, kinds: Sequence[Kind]) -> Part:
    levels = tuple(level for level in ground.levels(kinds) if level != 0)
    return Part(suite, tuple(kinds), levels)
