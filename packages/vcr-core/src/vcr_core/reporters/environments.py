"""On what the runs were made: every environment once, and what sets it apart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vcr_core.reporters.facts import Fact, facts_of

if TYPE_CHECKING:
    from vcr_core.reporters.rows import Row
    from vcr_core.summary import RunView


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """One environment.

    Attributes:
        number: from 1, in the order of the runs.
        runs: ids of the runs that were made in it.
        facts: interpreter, platform, devices, libraries.
        versions: versions of distributions.
        differences: facts and versions that are not those of the first environment; what is
            missing here is said to be so.
    """

    number: int
    runs: tuple[str, ...]
    facts: tuple[Fact, ...]
    versions: tuple[Fact, ...]
    differences: tuple[Fact, ...]


def environments(ordered: Sequence[tuple[Row, RunView]]) -> list[Environment]:
    """Return the different environments of the runs; those without a record of it have none."""
    groups: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for row, run in ordered:
        found = run.manifest.get("environment")
        if isinstance(found, Mapping) and found:
            key = json.dumps(found, sort_keys=True, default=str)
            groups.setdefault(key, []).append((row.run, found))
    first: dict[str, str] = {}
    result = []
    for number, members in enumerate(groups.values(), 1):
        found = members[0][1]
        facts = facts_of({k: v for k, v in found.items() if k != "versions"})
        versions = facts_of(found.get("versions") or {})
        everything = {fact.name: fact.value for fact in (*facts, *versions)}
        first = first or everything
        names = dict.fromkeys((*first, *everything))
        result.append(
            Environment(
                number=number,
                runs=tuple(run for run, _ in members),
                facts=facts,
                versions=versions,
                differences=tuple(
                    Fact(name=name, value=everything.get(name, "not there"))
                    for name in names
                    if everything.get(name) != first.get(name)
                ),
            )
        )
    return result
