"""Which of our runs belong into a published table, and why the others do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vcr_core import outcomes
from vcr_core.manifest import (
    attack_name,
    component_ref,
    defense_refs,
    is_adaptive,
    is_targeted,
    table,
)
from vcr_core.paper.published import DATASET, EPS, names

if TYPE_CHECKING:
    from vcr_core.summary import RunView

BARE = "No defense"


@dataclass(frozen=True, slots=True)
class Placed:
    """A run with its place.

    Attributes:
        run: the run.
        model: the paper's name, or our reference where the paper has none.
        attack: likewise.
        defense: likewise; several are joined.
        adaptive: whether the attack knew the defense.
        reason: why it cannot be compared with the paper; ``""`` if it can.
    """

    run: RunView
    model: str
    attack: str
    defense: str
    adaptive: bool
    reason: str

    @property
    def dataset(self) -> str:
        """Reference of the dataset."""
        return component_ref(self.run.manifest, "dataset")


def place_runs(runs: Sequence[RunView]) -> list[Placed]:
    """Return the attacked runs with their places; of equal ones the one with the most videos."""
    found: dict[tuple[str, ...], Placed] = {}
    for run in sorted(runs, key=lambda one: (-_evaluated(one), one.name)):
        if component_ref(run.manifest, "attack") and _evaluated(run):
            placed = place(run)
            key = (
                placed.dataset, placed.model, placed.attack, placed.defense,
                str(placed.adaptive), placed.reason,
            )  # fmt: skip
            found.setdefault(key, placed)
    return list(found.values())


def place(run: RunView) -> Placed:
    """Return where an attacked run belongs."""
    manifest = run.manifest
    known = names()
    model, attack = component_ref(manifest, "model"), attack_name(manifest)
    defenses = defense_refs(manifest)
    model_row, attack_column = known.model(model), known.attack(attack)
    joined = " → ".join(defenses)
    defense_row = (known.defense(joined) or joined) if defenses else BARE
    reason = ""
    dataset = component_ref(manifest, "dataset")
    if dataset != DATASET:
        reason = f"on {dataset}, not {DATASET}"
    elif component_ref(manifest, "source"):
        reason = "attacked on another model; the paper's attacks are white-box or query the model"
    elif model_row is None:
        reason = f"{model} is not in the paper"
    elif attack_column is None:
        reason = f"{attack} is not in the paper's tables"
    elif not is_targeted(manifest):
        reason = "untargeted; the paper's runs aim at the least likely class"
    else:
        reason = _other_threat(run)
    return Placed(
        run,
        model_row or model,
        attack_column or attack,
        defense_row,
        is_adaptive(manifest),
        reason,
    )


def left_out(placed: Sequence[Placed]) -> list[str]:
    """Return why runs are not in a table, with how many there are of each kind."""
    counted = Counter(one.reason for one in placed if one.reason)
    return [f"{_runs(count)} {reason}" for reason, count in counted.most_common()]


def _other_threat(run: RunView) -> str:
    from vcr_core.reporters.rows import eps_of, threat_text

    threat = table(run.manifest, "threat")
    if threat.get("target", "least-likely") != "least-likely":
        return f"target {threat['target']}; the paper's runs aim at the least likely class"
    norm, eps = str(threat.get("norm", "linf")), eps_of(threat)
    if norm == "none" or (norm == "linf" and eps is not None and abs(eps - EPS) < 1e-9):
        return ""
    return f"at {threat_text(norm, eps)}; the paper's radius is {threat_text('linf', EPS)}"


def _evaluated(run: RunView) -> int:
    return sum(outcomes.is_evaluated(record) for record in run.records)


def _runs(count: int) -> str:
    return "1 run:" if count == 1 else f"{count} runs:"
