"""Which run of one folder belongs to which of another: those that differ in one thing alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from vcr_core.errors import UsageError
from vcr_core.manifest import (
    attack_name,
    component_ref,
    defense_refs,
    is_adaptive,
    is_targeted,
    table,
)
from vcr_core.run_settings import (
    ATTACK_KEYS,
    DEFENSE_KEYS,
    defense_tables,
    protocol_of,
    threat_of,
)

if TYPE_CHECKING:
    from vcr_core.summary import RunView

AXES = ("model", "defense", "attack", "threat", "protocol", "seed", "dataset")
"""What runs may differ in, the likeliest first."""

WHERE = ("dataset", "model", "attack", "source", "defense", "adaptive")
"""What runs can be selected by."""


@dataclass(frozen=True, slots=True)
class RunPair:
    """Two runs that belong together; ``label`` says what tells this pair from the others."""

    a: RunView
    b: RunView
    label: str


@dataclass(frozen=True, slots=True)
class Matching:
    """How the runs of two folders go together.

    Attributes:
        pairs: in the order of the first folder's runs.
        varied: the axes in which the runs of a pair may differ; empty if each pair is one
            experiment run twice.
        only_a: runs of the first folder without a partner.
        only_b: runs of the second folder without a partner.
    """

    pairs: tuple[RunPair, ...]
    varied: tuple[str, ...]
    only_a: tuple[RunView, ...] = ()
    only_b: tuple[RunView, ...] = ()


def match_runs(a: Sequence[RunView], b: Sequence[RunView], *, vary: Sequence[str] = ()) -> Matching:
    """Return which runs belong together.

    One run against one run is a pair whatever they differ in, and so is one run against each of
    several. Otherwise runs are paired that agree in everything but some axes. The axes are
    ``vary``, or those that leave the most pairs, as few of them as possible.

    Args:
        a: baseline runs.
        b: runs to compare with them.
        vary: names of :data:`AXES`; found by itself without.

    Raises:
        UsageError: if nothing can be paired, with the reason.
    """
    unknown = [name for name in vary if name not in AXES]
    if unknown:
        raise UsageError(f"{unknown[0]!r} is nothing runs can vary in: {', '.join(AXES)}")
    known = {run.folder.resolve() for run in a}
    others = [run for run in b if run.folder.resolve() not in known]
    if not others:
        raise UsageError("both sides are the same runs: there is nothing to compare")
    if len(a) == 1 and not vary:
        return _one_against(a[0], others)
    keys = [({run.name: _axes(run) for run in side}, side) for side in (a, others)]
    candidates = [tuple(vary)] if vary else _subsets()
    best: tuple[str, ...] = ()
    found: list[tuple[RunView, RunView]] = []
    for varied in candidates:
        pairs = _paired(keys, varied)
        if len(pairs) > len(found):
            best, found = varied, pairs
    if not found:
        raise UsageError(_why_none(a, others, vary))
    return _matching(found, best, a, others)


def select(runs: Sequence[RunView], conditions: Sequence[str]) -> list[RunView]:
    """Return the runs that meet every condition, as ``model=tiny-r3d`` or ``adaptive=yes``.

    Raises:
        UsageError: for a condition that is none.
    """
    wanted = []
    for text in conditions:
        key, equals, value = text.partition("=")
        if not equals or key not in WHERE:
            raise UsageError(
                f"{text!r} is no condition; write KEY=VALUE, KEY one of {', '.join(WHERE)}"
            )
        wanted.append((key, value.strip()))
    return [run for run in runs if all(_where(run, key) == value for key, value in wanted)]


def _one_against(one: RunView, others: Sequence[RunView]) -> Matching:
    varied = [axis for axis in AXES if any(_axes(one)[axis] != _axes(o)[axis] for o in others)]
    words = [
        [(_describe(one, axis), _describe(other, axis)) for axis in varied] for other in others
    ]
    texts = [
        ", ".join(f"{x or 'none'} → {y or 'none'}" for x, y in row if x != y) or "same settings"
        for row in words
    ]
    labels = _numbered(texts)
    return Matching(
        tuple(RunPair(one, o, label) for o, label in zip(others, labels, strict=True)),
        tuple(varied),
    )


def _matching(
    found: Sequence[tuple[RunView, RunView]],
    varied: tuple[str, ...],
    a: Sequence[RunView],
    b: Sequence[RunView],
) -> Matching:
    shared = [axis for axis in AXES if axis not in varied]
    labels = _labels([[_describe(x, axis) for axis in shared] for x, _ in found])
    paired = {run.folder for pair in found for run in pair}
    return Matching(
        tuple(RunPair(x, y, label) for (x, y), label in zip(found, labels, strict=True)),
        varied,
        tuple(run for run in a if run.folder not in paired),
        tuple(run for run in b if run.folder not in paired),
    )


def _subsets() -> list[tuple[str, ...]]:
    return [chosen for size in range(len(AXES) + 1) for chosen in combinations(AXES, size)]


def _paired(
    keys: Sequence[tuple[Mapping[str, Mapping[str, str]], Sequence[RunView]]],
    varied: Sequence[str],
) -> list[tuple[RunView, RunView]]:
    """Return the pairs that agree in all other axes; runs that are not unique there are none."""
    sides = []
    for axes, runs in keys:
        named = [(_key(axes[run.name], varied), run) for run in runs]
        counts = Counter(key for key, _ in named)
        sides.append({key: run for key, run in named if counts[key] == 1})
    first, second = sides
    return [(run, second[key]) for key, run in first.items() if key in second]


def _key(axes: Mapping[str, str], varied: Sequence[str]) -> tuple[str, ...]:
    # A protocol's keys about defenses and attacks go with these.
    dropped = set(varied)
    parts = [axes[axis] for axis in AXES if axis not in dropped and axis != "protocol"]
    if "protocol" not in dropped:
        parts.append(axes["protocol.general"])
        parts += [axes[f"protocol.{axis}"] for axis in ("attack", "defense") if axis not in dropped]
    return tuple(parts)


def _axes(run: RunView) -> dict[str, str]:
    """Return what a run is on every axis, as text that can be compared."""
    manifest = run.manifest
    protocol = protocol_of(manifest)
    about_defense = {k: v for k, v in protocol.items() if k in DEFENSE_KEYS}
    about_attack = {k: v for k, v in protocol.items() if k in ATTACK_KEYS}
    general = {
        k: v for k, v in protocol.items() if k not in about_defense and k not in about_attack
    }
    return {
        "model": _text(table(manifest, "model")),
        "defense": _text(defense_tables(manifest)),
        "attack": _text([table(manifest, "attack"), table(manifest, "source")]),
        "threat": _text(threat_of(manifest)),
        "protocol": _text(protocol),
        "protocol.general": _text(general),
        "protocol.attack": _text(about_attack),
        "protocol.defense": _text(about_defense),
        "seed": _text((manifest.get("experiment") or {}).get("seed")),
        "dataset": _text(table(manifest, "dataset")),
    }


def _describe(run: RunView, axis: str) -> str:
    manifest = run.manifest
    if axis == "defense":
        words = " → ".join(defense_refs(manifest)) or "no defense"
        if component_ref(manifest, "attack") and defense_refs(manifest):
            words += ", adaptive" if is_adaptive(manifest) else ", unaware"
        return words
    if axis == "attack":
        return attack_name(manifest) or "no attack"
    if axis == "threat":
        return _threat_words(manifest)
    if axis == "seed":
        return f"seed {(manifest.get('experiment') or {}).get('seed')}"
    if axis == "protocol":
        return ", ".join(f"{k} {v}" for k, v in protocol_of(manifest).items() if k == "views")
    return component_ref(manifest, axis)


def _where(run: RunView, key: str) -> str:
    if key == "adaptive":
        return "yes" if is_adaptive(run.manifest) else "no"
    if key == "defense":
        return "+".join(defense_refs(run.manifest)) or "none"
    return component_ref(run.manifest, key) or "none"


def _threat_words(manifest: Mapping[str, Any]) -> str:
    from vcr_core.reporters.rows import eps_of, threat_text

    if not component_ref(manifest, "attack"):
        return ""
    threat = table(manifest, "threat")
    norm = str(threat.get("norm", "linf"))
    words = threat_text(norm, None if norm == "none" else eps_of(threat))
    return f"{words}, targeted" if is_targeted(manifest) else words


def _labels(described: Sequence[Sequence[str]]) -> list[str]:
    """Return labels of the parts in which pairs differ, or of all if they are one."""
    if not described:
        return []
    telling = [i for i in range(len(described[0])) if len({row[i] for row in described}) > 1]
    shown = telling or range(len(described[0]))
    return _numbered([", ".join(row[i] for i in shown if row[i]) for row in described])


def _numbered(labels: Sequence[str]) -> list[str]:
    """Return labels that are all different."""
    times, seen = Counter(labels), Counter[str]()
    found = []
    for label in labels:
        seen[label] += 1
        found.append(f"{label} ({seen[label]})" if times[label] > 1 else label)
    return found


def _why_none(a: Sequence[RunView], b: Sequence[RunView], vary: Sequence[str]) -> str:
    counts = f"{len(a)} and {len(b)} runs cannot be paired: "
    if vary:
        return (
            f"{counts}apart from {', '.join(vary)} no run of the one side equals exactly one of "
            "the other"
        )
    differ = [
        axis
        for axis in AXES
        if not {_axes(run)[axis] for run in a} & {_axes(run)[axis] for run in b}
    ]
    where = f"they share no {', no '.join(differ)}" if differ else "several runs fit each other"
    return f"{counts}{where}; name two runs, or say with --vary in what they differ"


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
