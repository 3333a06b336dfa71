"""What tells runs apart that would otherwise look the same in a table."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vcr_core.run_settings import run_settings

if TYPE_CHECKING:
    from vcr_core.reporters.rows import Row
    from vcr_core.summary import RunView

_SHOWN_ANYWAY = frozenset(
    {
        "threat.eps",
        "threat.norm",
        "threat.targeted",
        "protocol.attacker_knows_defense",
        "source.name",
    }
)


def with_details(pairs: Sequence[tuple[Row, RunView]]) -> list[tuple[Row, RunView]]:
    """Return ``pairs`` with ``Row.detail`` set where two rows would read alike.

    The settings in which such rows differ are named on every row of the same attack and defense
    whose value is not the usual one among them.
    """
    settings = [_settings(run) for _, run in pairs]
    families: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for index, (row, _) in enumerate(pairs):
        attack = (row.attack, row.source, row.targeted, row.norm)
        families[(row.dataset, *attack, row.defense, row.adaptive)] += [index]
    details = [""] * len(pairs)
    for members in families.values():
        for name in sorted(_needed(members, pairs, settings)):
            values = [settings[index].get(name) for index in members]
            (usual, times), *others = Counter(values).most_common(2)
            tied = bool(others) and others[0][1] == times
            for index, value in zip(members, values, strict=True):
                if (tied or value != usual) and value is not None:
                    told = f"{name.rpartition('.')[2]} = {value}"
                    details[index] = f"{details[index]}, {told}" if details[index] else told
    return [
        (replace(row, detail=detail), run)
        for (row, run), detail in zip(pairs, details, strict=True)
    ]


def _needed(
    members: Sequence[int],
    pairs: Sequence[tuple[Row, RunView]],
    settings: Sequence[Mapping[str, str]],
) -> set[str]:
    """Return the settings that differ between members with the same model and radius."""
    alike: dict[tuple[str, float | None], list[int]] = defaultdict(list)
    for index in members:
        row = pairs[index][0]
        alike[(row.model, row.eps)].append(index)
    needed: set[str] = set()
    for group in alike.values():
        names = {name for index in group for name in settings[index]}
        needed |= {name for name in names if len({settings[i].get(name) for i in group}) > 1}
    return needed


def _settings(run: RunView) -> dict[str, str]:
    found = run_settings(run.manifest)
    return {name: value for name, value in found.items() if name not in _SHOWN_ANYWAY}
