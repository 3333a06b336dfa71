"""What two runs can be compared in: rates of the whole system, other rates, distances, costs.

``clean_accuracy``, ``robust_accuracy``, ``asr_untargeted`` and ``asr_targeted`` are here those of
the whole system: of the defended model in a run that has a defense, else of the model. The model
without its defense is ``bare_clean_accuracy`` and so on. Every other rate of
:mod:`vcr_core.definitions`, every metric and every cost goes by its own name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from vcr_core import definitions
from vcr_core.errors import UsageError
from vcr_core.manifest import component_ref, defense_refs
from vcr_core.reuse_store import REUSED
from vcr_core.stats import Term
from vcr_core.tables import metric_value

if TYPE_CHECKING:
    from vcr_core.summary import RunView

SYSTEM = ("clean_accuracy", "robust_accuracy", "asr_untargeted", "asr_targeted")
"""Rates whose plain name means the whole system."""
BARE = "bare_"
COSTS = ("forwards", "iterations", "t_attack_s")
"""Costs that are compared without being asked for."""

Kind = Literal["rate", "metric", "cost"]


@dataclass(frozen=True, slots=True)
class Side:
    """One run's part of a quantity.

    Attributes:
        of: the definition, metric or cost that it is.
        terms: what each video adds; empty where the run does not have the quantity.
        reason: why it does not.
    """

    of: str
    terms: Mapping[str, Term]
    reason: str = ""


def names(runs: Sequence[RunView]) -> list[str]:
    """Return everything that some of the runs has, under the names of this module."""
    found: dict[str, None] = {}
    for run in runs:
        rates = run.summary.get("definitions") or {}
        found.update(dict.fromkeys(n for n in SYSTEM if _definition(n, run) in rates))
        if defense_refs(run.manifest):
            found.update(dict.fromkeys(f"{BARE}{n}" for n in SYSTEM if n in rates))
        found.update(dict.fromkeys(n for n in rates if n not in SYSTEM))
        found.update(dict.fromkeys(_metric_names(run)))
        found.update(dict.fromkeys(run.summary.get("costs") or ()))
    return list(found)


def usual_names(runs: Sequence[RunView], *, few: bool = False) -> list[str]:
    """Return what is compared without being asked for, as far as some run has it.

    With ``few``, for tables of many pairs, that is one rate: every test makes the others weaker.
    """
    there = names(runs)
    if few:
        return [next(n for n in ("robust_accuracy", "clean_accuracy") if n in there)]
    metrics = sorted({name for run in runs for name in _metric_names(run)})
    return [name for name in (*SYSTEM, *metrics, *COSTS) if name in there]


def kind_of(name: str, runs: Sequence[RunView]) -> Kind:
    """Return whether a name is a rate, a metric or a cost of these runs.

    Raises:
        UsageError: if it is nothing that any of the runs has or could have.
    """
    if name.removeprefix(BARE) in SYSTEM or name in definitions.DEFINITIONS:
        return "rate"
    if any(name in _metric_names(run) for run in runs):
        return "metric"
    if any(name in (run.summary.get("costs") or ()) for run in runs):
        return "cost"
    from vcr_core.refs import did_you_mean

    there = names(runs)
    guess = did_you_mean(name, [*there, *definitions.DEFINITIONS]) or f": {', '.join(there)}"
    raise UsageError(f"{name!r} is nothing these runs have{guess}")


def is_share(name: str) -> bool:
    """Return whether a rate is a proportion, of which McNemar's test knows what to make."""
    rule = definitions.DEFINITIONS.get(name.removeprefix(BARE))
    return rule is not None and rule.is_share


def side_of(name: str, kind: Kind, run: RunView, videos: Iterable[str]) -> Side:
    """Return what each of ``videos`` adds to a quantity of a run.

    Rates have a term for every video, an empty one for videos outside of their population; means
    have one for every attacked video that has a value.
    """
    chosen = set(videos)
    records = [record for record in run.records if record["video"] in chosen]
    if kind == "rate":
        return _rate(name, run, records)
    if kind == "metric":
        return _mean(name, [(r, metric_value(r, name)) for r in records if r["status"] == "ok"])
    return _cost(name, run, records)


def _rate(name: str, run: RunView, records: Sequence[Mapping[str, Any]]) -> Side:
    definition = _definition(name, run)
    if name.startswith(BARE) and not defense_refs(run.manifest):
        definition = name.removeprefix(BARE)
    rates = run.summary.get("definitions") or {}
    if definition not in rates:
        return Side(definition, {}, "the run has no such rate")
    terms = definitions.terms(definition, records)
    if not any(term.den for term in terms.values()):
        return Side(definition, {}, definitions.NO_VALUE)
    return Side(definition, {r["video"]: terms.get(r["video"], Term(0, 0)) for r in records})


def _definition(name: str, run: RunView) -> str:
    if name.startswith(BARE):
        return name.removeprefix(BARE)
    return f"defended_{name}" if name in SYSTEM and defense_refs(run.manifest) else name


def _mean(name: str, values: Iterable[tuple[Mapping[str, Any], float | None]]) -> Side:
    found = {r["video"]: Term(v) for r, v in values if v is not None and math.isfinite(v)}
    return Side(name, found, "" if found else "no video has a value")


def _cost(name: str, run: RunView, records: Sequence[Mapping[str, Any]]) -> Side:
    if name == "t_attack_s" and any(_is_reused(record) for record in records):
        reason = "the attack was taken over from another run, which has its time"
        return Side(name, {}, reason)
    if component_ref(run.manifest, "attack"):
        records = [record for record in records if record["status"] == "ok"]
    values = [(record, (record.get("cost") or {}).get(name)) for record in records]
    return _mean(name, [(r, float(v) if isinstance(v, int | float) else None) for r, v in values])


def _is_reused(record: Mapping[str, Any]) -> bool:
    return any(str(note).startswith(REUSED) for note in record.get("notes") or ())


def _metric_names(run: RunView) -> list[str]:
    """Return the metrics that records hold; those of a summary may be made of several."""
    return sorted({name for record in run.records for name in record.get("metrics") or ()})
