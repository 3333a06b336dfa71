"""Health flags that are found after the fact: in one run's records, and between runs.

The flags of single videos come from the contest itself. None of these needs an extra evaluation.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from vcr_core.adaptive_pairs import adaptive_pairs
from vcr_core.manifest import defense_refs, is_adaptive, table
from vcr_core.transformation import is_transformation

if TYPE_CHECKING:
    from vcr_core.summary import RunView

OFTEN = 0.5
"""Share of the attacked videos from which "often" counts."""

CLEAR_VIDEOS = 2
CLEAR_SHARE = 0.05
"""A difference between two runs counts from so many videos, and from such a share of them."""

WITH_GRADIENT = "white-box"
WITHOUT_GRADIENT = ("score", "decision", "transfer")


def run_flags(records: Sequence[Mapping[str, Any]], *, errors_over_budget: bool) -> list[str]:
    """Return the flags of a run as a whole."""
    attacked = [r for r in records if r.get("status") == "ok" and "success" in r]
    exhausted = sum(bool(r["cost"].get("budget_exhausted")) for r in attacked)
    flags = []
    if attacked and exhausted > OFTEN * len(attacked):
        flags.append("budget-exhausted-often")
    if errors_over_budget:
        flags.append("errors-over-budget")
    return flags


def comparative_flags(runs: Sequence[RunView]) -> dict[str, set[str]]:
    """Return the flags that runs raise next to each other, by run id.

    Compared are runs on the same videos, model, defenses and protocol. Larger radii and more steps
    of one attack must not leave clearly more videos standing, and no attack without gradients may
    leave clearly fewer than every one with gradients. An attack that knows the defense must not
    leave clearly more than the same attack without that knowledge.
    """
    flags: dict[str, set[str]] = defaultdict(set)
    for group in _groups(runs).values():
        for one, other in combinations(group, 2):
            for weak, strong in ((one, other), (other, one)):
                _compare(weak, strong, flags)
        _masked(group, flags)
    for pair in adaptive_pairs(runs):
        if pair.is_clearly_reversed:
            flags[pair.adaptive.name].add("unaware-beats-adaptive")
    return dict(flags)


class _Run:
    """What the comparisons need of a run."""

    def __init__(self, run: RunView) -> None:
        self.name = run.name
        manifest = run.manifest
        self.threat = dict(table(manifest, "threat"))
        self.attack = dict(table(manifest, "attack"))
        self.eps = self.threat.pop("eps", None)
        self.steps = self.attack.get("steps")
        self.access = next(
            (c.get("access") for c in manifest.get("components") or () if c["role"] == "attack"),
            None,
        )
        prefix = "defended_" if defense_refs(manifest) and is_adaptive(manifest) else ""
        definition = (run.summary.get("definitions") or {}).get(f"{prefix}robust_accuracy") or {}
        self.robust = definition.get("value")
        self.n = definition.get("n") or 0

    def clearly_above(self, other: _Run) -> bool:
        """Return whether clearly more videos stood than in the other run."""
        if self.robust is None or other.robust is None or not self.n:
            return False
        gap = self.robust - other.robust
        return bool(gap * self.n >= CLEAR_VIDEOS - 1e-9 and gap >= CLEAR_SHARE)


def _groups(runs: Sequence[RunView]) -> dict[str, list[_Run]]:
    groups: dict[str, list[_Run]] = defaultdict(list)
    for run in runs:
        experiment = run.manifest.get("experiment") or {}
        if not experiment.get("attack") or run.manifest.get("status") != "done":
            continue
        if is_transformation(run.manifest):
            # Nobody tries harder there: the steps of a shift are its direction and distance.
            continue
        rest = {
            key: value
            for key, value in experiment.items()
            if key not in ("attack", "threat", "output", "metrics")
        }
        rest["fingerprint"] = (run.manifest.get("dataset") or {}).get("fingerprint")
        rest["targeted"] = table(run.manifest, "threat").get("targeted")
        groups[json.dumps(rest, sort_keys=True, default=str)].append(_Run(run))
    return groups


def _compare(weak: _Run, strong: _Run, flags: dict[str, set[str]]) -> None:
    """Flag ``strong`` if it had more to spend than ``weak``, all else equal, and did less."""
    if not strong.clearly_above(weak):
        return
    same_attack = weak.attack == strong.attack
    if same_attack and weak.threat == strong.threat and _more(weak.eps, strong.eps):
        flags[strong.name].add("larger-eps-does-not-help")
    if weak.threat == strong.threat and weak.eps == strong.eps and _more(weak.steps, strong.steps):
        without = [{k: v for k, v in r.attack.items() if k != "steps"} for r in (weak, strong)]
        if without[0] == without[1]:
            flags[strong.name].add("more-steps-do-not-help")


def _masked(group: Sequence[_Run], flags: dict[str, set[str]]) -> None:
    """Flag white-box runs that an attack without gradients beats at the same threat."""
    for blind in (r for r in group if r.access in WITHOUT_GRADIENT):
        seeing = [
            r
            for r in group
            if r.access == WITH_GRADIENT and (r.threat, r.eps) == (blind.threat, blind.eps)
        ]
        if seeing and all(r.clearly_above(blind) for r in seeing):
            for run in seeing:
                flags[run.name].add("blackbox-beats-whitebox")


def _more(one: Any, other: Any) -> bool:
    from vcr_core.config.fraction_text import parse_number

    low, high = (parse_number(v) if isinstance(v, str) else v for v in (one, other))
    return isinstance(low, int | float) and isinstance(high, int | float) and low < high
