"""Runs of one attack on one defended model, with and without knowledge of the defense."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vcr_core.manifest import component_ref, defense_refs, is_adaptive, table

if TYPE_CHECKING:
    from vcr_core.summary import RunView

CLEAR_VIDEOS = 2
CLEAR_SHARE = 0.02
"""An unaware attack beats the adaptive one clearly from so many videos, and from such a share."""

_APART = frozenset({"output", "metrics", "runtime", "paths", "executor", "protocol", "defense"})
_ADAPTIVE_ONLY = frozenset({"attacker_knows_defense", "gradient", "eot", "confirm"})


@dataclass(frozen=True, slots=True)
class AdaptivePair:
    """An adaptive run and an unaware one that differ in nothing else.

    Attributes:
        adaptive: the attack saw the defended model.
        unaware: the attack saw the bare model.
    """

    adaptive: RunView
    unaware: RunView

    @property
    def is_reversed(self) -> bool:
        """Whether the attack that knew less left fewer videos standing."""
        known, unknown = self.robust
        return unknown < known

    @property
    def is_clearly_reversed(self) -> bool:
        """Whether it did so on more videos than chance would explain."""
        known, unknown = self.robust
        gap = known - unknown
        return gap >= CLEAR_SHARE - 1e-9 and gap * _defended(self.adaptive)["n"] >= (
            CLEAR_VIDEOS - 1e-9
        )

    @property
    def robust(self) -> tuple[float, float]:
        """Robust accuracy of the defended model under both: adaptive, unaware."""
        return _defended(self.adaptive)["value"], _defended(self.unaware)["value"]


def adaptive_pairs(runs: Sequence[RunView]) -> list[AdaptivePair]:
    """Return the pairs among finished runs, each adaptive run with each unaware one it matches."""
    groups: dict[str, list[RunView]] = defaultdict(list)
    for run in runs:
        attacked = component_ref(run.manifest, "attack") and defense_refs(run.manifest)
        done = run.manifest.get("status") == "done"
        if attacked and done and _defended(run).get("value") is not None:
            groups[_key(run.manifest)].append(run)
    return [
        AdaptivePair(known, unknown)
        for group in groups.values()
        for known in group
        if is_adaptive(known.manifest)
        for unknown in group
        if not is_adaptive(unknown.manifest)
    ]


def _defended(run: RunView) -> Mapping[str, Any]:
    found = (run.summary.get("definitions") or {}).get("defended_robust_accuracy")
    return found if isinstance(found, Mapping) else {}


def _key(manifest: Mapping[str, Any]) -> str:
    """Return what a pair has in common, as text."""
    experiment = manifest.get("experiment") or {}
    chain = experiment.get("defense") or []
    links = [chain] if isinstance(chain, Mapping) else chain
    same = {
        **{key: value for key, value in experiment.items() if key not in _APART},
        "protocol": {
            k: v for k, v in table(manifest, "protocol").items() if k not in _ADAPTIVE_ONLY
        },
        "defense": [{k: v for k, v in link.items() if k != "attack_params"} for link in links],
        "fingerprint": (manifest.get("dataset") or {}).get("fingerprint"),
    }
    return json.dumps(same, sort_keys=True, default=str)
