"""A run's numbers, derived from its records whenever they are asked for."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core import definitions, means, outcomes
from vcr_core.atomic import write_json
from vcr_core.certified import describe_certificates
from vcr_core.corruption import fingerprint
from vcr_core.detection import describe_detection
from vcr_core.errors import StoreError
from vcr_core.manifest import (
    MANIFEST_FILE,
    component_ref,
    defense_refs,
    has_own_labels,
    is_adaptive,
    is_targeted,
    planned_videos,
    read_manifest,
)
from vcr_core.outcomes import OWN_LABEL
from vcr_core.record_schema import STATUSES
from vcr_core.records import read_records
from vcr_core.tamper_detection import describe_tamper_detection
from vcr_core.tamper_robustness import overlap_curve
from vcr_core.transformation import describe_transformation, is_transformation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vcr_core.definitions import Need

SUMMARY_SCHEMA = 1
SUMMARY_FILE = "summary.json"


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as reports and comparisons see it.

    Attributes:
        folder: the run folder.
        manifest: ``run.json``.
        records: the last attempt of every video, in plan order.
        summary: what :func:`summarize` makes of them; empty where it was not asked for.
    """

    folder: Path
    manifest: dict[str, Any]
    records: list[dict[str, Any]]
    summary: dict[str, Any]

    @property
    def name(self) -> str:
        """The run id."""
        return str(self.manifest.get("run") or self.folder.name)

    @property
    def dataset(self) -> str:
        """Reference of the dataset."""
        return component_ref(self.manifest, "dataset")

    @property
    def model(self) -> str:
        """Reference of the model."""
        return component_ref(self.manifest, "model")

    @property
    def attack(self) -> str:
        """Reference of the attack, or ``""``."""
        return component_ref(self.manifest, "attack")

    @property
    def defenses(self) -> tuple[str, ...]:
        """References of the defenses in the order in which they apply."""
        return defense_refs(self.manifest)


def load_run(folder: Path | str, *, details: bool = True, summary: bool = True) -> RunView:
    """Read a run, finished or not.

    Args:
        folder: the run folder.
        details: see :func:`vcr_core.records.read_records`; no number of a summary rests on them.
        summary: whether to derive the summary.

    Raises:
        StoreError: if the folder is not a run folder, or a file in it is damaged or too new.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    records = read_records(folder, details=details)
    return RunView(folder, manifest, records, summarize(manifest, records) if summary else {})


def find_runs(path: Path | str) -> list[Path]:
    """Return the run folders at or below ``path``, sorted.

    Args:
        path: a run folder, its ``run.json``, or any folder that contains run folders.

    Raises:
        StoreError: if ``path`` does not exist. A folder without runs gives an empty list.
    """
    path = Path(path)
    if path.is_file() and path.name == MANIFEST_FILE:
        path = path.parent
    if not path.is_dir():
        raise StoreError(f"{path}: no such folder")
    found = []
    for folder, below, files in os.walk(path):
        if MANIFEST_FILE in files:
            found.append(Path(folder))
            below.clear()
        else:
            below[:] = sorted(name for name in below if not name.startswith("."))
    return sorted(found)


def write_summary(folder: Path | str) -> dict[str, Any]:
    """Derive ``summary.json`` of a run from its records, replace it, and return it."""
    summary = load_run(folder).summary
    write_json(Path(folder) / SUMMARY_FILE, summary)
    return summary


def summarize(
    manifest: Mapping[str, Any], records: Sequence[Mapping[str, Any]], *, seed: int = 0
) -> dict[str, Any]:
    """Return every number of a run, with intervals and with what is missing.

    Args:
        manifest: ``run.json``; decides which rates apply, together with the records.
        records: one per video.
        seed: of the bootstrap; the same records give the same summary.

    Returns:
        JSON-ready data: ``counts``, ``headline``, ``definitions``, ``metrics``, ``predictions``,
        ``perturbation``, ``costs``, ``flags``, ``errors``, ``evaluation_version`` and facts about
        the run; ``transformation`` and ``fingerprint`` where nobody attacks, ``certificate`` and
        ``detection`` where the defense certifies or detects, ``tamper_detection`` where the dataset
        tells what was done to its videos.
    """
    facts = run_facts(manifest, records)
    evaluated = [record for record in records if outcomes.is_evaluated(record)]
    attacked = [record for record in evaluated if record["status"] == "ok"]
    rates = {
        rule.name: definitions.evaluate(rule.name, evaluated, seed=seed)
        for rule in definitions.applicable(facts)
    }
    return {
        "schema": SUMMARY_SCHEMA,
        "run": manifest.get("run"),
        "status": manifest.get("status"),
        "evaluation_version": manifest.get("evaluation_version"),
        "adaptive": is_adaptive(manifest) if {"attack", "defense"} <= facts else None,
        "targeted": "target" in facts if "attack" in facts else None,
        **_if_any("labels", OWN_LABEL if has_own_labels(manifest) else None),
        "draws": outcomes.draw_count(evaluated),
        "counts": _counts(manifest, records),
        "headline": _headline(manifest, facts, rates),
        "definitions": rates,
        **_if_any("transformation", _transformation(manifest, evaluated, facts, seed)),
        **_if_any("fingerprint", fingerprint(manifest, records)),
        **_if_any("certificate", describe_certificates(evaluated, seed=seed)),
        **_if_any("detection", describe_detection(evaluated, seed=seed)),
        **_if_any("tamper_detection", _tamper_detection(manifest, evaluated, seed)),
        "metrics": means.metrics(attacked, seed),
        "predictions": means.predictions(attacked, seed),
        "perturbation": means.perturbation(attacked, seed),
        "costs": means.costs(attacked if "attack" in facts else evaluated),
        "flags": _flags(manifest, records),
        "errors": _errors(records),
    }


def _transformation(
    manifest: Mapping[str, Any],
    evaluated: Sequence[Mapping[str, Any]],
    facts: frozenset[Need],
    seed: int,
) -> dict[str, Any] | None:
    """Return how predictions fare under an attack that asks nothing, behind any defense."""
    if not is_transformation(manifest):
        return None
    defended = "defense" in facts
    found = describe_transformation(evaluated, defended=defended, seed=seed)
    curve = overlap_curve(evaluated, defended=defended, seed=seed)
    return found if curve is None else {**found, "by_overlap": curve}


def _tamper_detection(
    manifest: Mapping[str, Any], evaluated: Sequence[Mapping[str, Any]], seed: int
) -> dict[str, Any] | None:
    """Return how well tampering is detected, where the dataset tells what was done to videos."""
    labels = (manifest.get("dataset") or {}).get("labels")
    names = labels if isinstance(labels, list) else ()
    return describe_tamper_detection(evaluated, labels=names, seed=seed)


def run_facts(manifest: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> frozenset[Need]:
    """Return what a run has (attack, defense, target…), by its manifest and its records."""
    return _planned_facts(manifest) | definitions.facts_of(records)


def headline_facts(
    manifest: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> frozenset[Need]:
    """Return those of :func:`run_facts` that :func:`headline_rates` asks for."""
    planned = _planned_facts(manifest)
    return planned | definitions.facts_of(records, among=_HEADLINE_FACTS - planned)


_HEADLINE_FACTS: frozenset[Need] = frozenset({"attack", "defense", "target"})


def _planned_facts(manifest: Mapping[str, Any]) -> frozenset[Need]:
    facts: set[Need] = set()
    if component_ref(manifest, "attack"):
        facts.add("attack")
    if defense_refs(manifest):
        facts.add("defense")
    if is_targeted(manifest):
        facts.add("target")
    return frozenset(facts)


def headline_rates(manifest: Mapping[str, Any], facts: frozenset[Need]) -> dict[str, str]:
    """Return which definition is the run's clean accuracy, robust accuracy and success rate.

    An attack that knew the defense was aimed at the defended model: its undefended numbers are
    transfer results. An attack that did not know it says nothing about the defended system's
    worst case, so there the bare pair is the result and the defended one is shown beside it.
    """
    prefix = "defended_" if _headline_is_defended(manifest, facts) else ""
    names = {"clean_accuracy": f"{prefix}clean_accuracy"}
    if "attack" in facts:
        names["robust_accuracy"] = f"{prefix}robust_accuracy"
        names["asr"] = f"{prefix}asr_untargeted"
        if "target" in facts:
            names["asr_targeted"] = f"{prefix}asr_targeted"
    return names


def _if_any(name: str, part: Any) -> dict[str, Any]:
    return {} if part is None else {name: part}


def _counts(
    manifest: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> dict[str, int | None]:
    status = Counter(str(record.get("status")) for record in records)
    planned = planned_videos(manifest)
    known = {record["video"] for record in records}
    return {
        **{name: status.get(name, 0) for name in STATUSES},
        "total": len(records),
        "planned": len(planned) if planned else None,
        "missing": sum(video not in known for video in planned) if planned else None,
    }


def _headline_is_defended(manifest: Mapping[str, Any], facts: frozenset[Need]) -> bool:
    return "defense" in facts and ("attack" not in facts or is_adaptive(manifest))


def _headline(
    manifest: Mapping[str, Any], facts: frozenset[Need], rates: Mapping[str, Any]
) -> dict[str, Any]:
    defended = _headline_is_defended(manifest, facts)
    if "attack" not in facts:
        note = "nothing was attacked"
    elif "defense" not in facts:
        note = "no defense"
    elif defended:
        note = "the attack saw the defended model; undefended rates are transfer results"
    else:
        note = "the attack did not know the defense; defended rates are no worst case"
    if has_own_labels(manifest):
        note += "; labels are the clean predictions: accuracy is agreement with them"
    names = headline_rates(manifest, facts)
    values = {key: rates[name]["value"] for key, name in names.items()}
    return {"defended": defended, "note": note, "definitions": names, "values": values}


def _flags(
    manifest: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> dict[str, int | None]:
    """Return for how many videos each flag was raised; ``None`` for flags of the whole run."""
    counted = Counter(str(flag) for record in records for flag in record.get("flags") or ())
    whole = {str(flag): None for flag in manifest.get("flags") or ()}
    return {**whole, **dict(sorted(counted.items()))}


def _errors(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    failures = [record.get("error") or {} for record in records if record.get("status") == "error"]
    return {
        "by_type": dict(sorted(Counter(str(f.get("type", "unknown")) for f in failures).items())),
        "by_stage": dict(sorted(Counter(str(f.get("stage", "unknown")) for f in failures).items())),
        "out_of_memory": sum(bool(failure.get("oom")) for failure in failures),
    }
