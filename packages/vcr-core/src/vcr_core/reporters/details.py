"""What the HTML report says about one run, in the order in which it says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vcr_core.definitions import DEFINITIONS
from vcr_core.health_text import explain_flag
from vcr_core.manifest import table
from vcr_core.reporters.cells import Cell, cell_from
from vcr_core.reporters.facts import Fact, facts_of, one_line_of
from vcr_core.reporters.guarantees import (
    CertificateDetails,
    DetectionRow,
    certificate_details,
    detection_rows,
)
from vcr_core.reporters.rows import Row, eps_text, flag_counts
from vcr_core.reporters.wording import (
    COST_TITLES,
    SIZE_TITLES,
    STATUS_TEXT,
    definition_title,
    metric_title,
)

if TYPE_CHECKING:
    from vcr_core.summary import RunView

MAX_ERRORS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A number with its title.

    Attributes:
        name: key in ``summary.json``.
        title: what it is called.
        cell: the value, mostly a mean.
        formula: how it is computed, where that is known.
        others: what stands beside it: for distances the mean over successful attacks, for costs
            the median and the sum, for perturbations the maximum.
    """

    name: str
    title: str
    cell: Cell
    formula: str = ""
    others: tuple[Cell, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagNote:
    """A health flag of a run; ``count`` is the number of videos, where known."""

    flag: str
    text: str
    count: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorNote:
    """A video that failed."""

    video: str
    stage: str
    type: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A component that took part."""

    role: str
    name: str
    source: str
    params: str
    weights: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetails:
    """Everything below a run's heading. ``errors_left_out`` counts those beyond the limit."""

    row: Row
    counts: tuple[Fact, ...]
    threat: tuple[Fact, ...]
    protocol: tuple[Fact, ...]
    definitions: tuple[Measure, ...]
    metrics: tuple[Measure, ...]
    sizes: tuple[Measure, ...]
    costs: tuple[Measure, ...]
    flags: tuple[FlagNote, ...]
    errors: tuple[ErrorNote, ...]
    errors_left_out: int
    components: tuple[Component, ...]
    config: str
    identity: tuple[Fact, ...]
    plugin_failures: tuple[str, ...]
    certificate: CertificateDetails | None = None
    detection: tuple[DetectionRow, ...] = ()


def run_details(run: RunView, row: Row) -> RunDetails:
    """Return the details of one run; what a run does not have is empty."""
    failed = [record for record in run.records if record.get("status") == "error"]
    return RunDetails(
        row=row,
        counts=_counts(run.summary.get("counts") or {}),
        threat=_threat(run, row),
        protocol=facts_of(table(run.manifest, "protocol")),
        definitions=_definitions(run, row),
        metrics=_metrics(run, row),
        sizes=_sizes(run),
        costs=_costs(run),
        flags=tuple(
            FlagNote(flag=flag, text=explain_flag(flag), count=count)
            for flag, count in sorted(flag_counts(run).items())
        ),
        errors=tuple(_error(record) for record in failed[:MAX_ERRORS]),
        errors_left_out=max(0, len(failed) - MAX_ERRORS),
        components=tuple(_component(c) for c in run.manifest.get("components") or ()),
        config=_config(run),
        identity=_identity(run),
        plugin_failures=tuple(one_line_of(f) for f in run.manifest.get("plugin_failures") or ()),
        certificate=certificate_details(run.summary),
        detection=detection_rows(run.summary),
    )


def _counts(counts: Mapping[str, Any]) -> tuple[Fact, ...]:
    return tuple(
        Fact(name=f"{status} ({STATUS_TEXT[status]})" if status in STATUS_TEXT else status,
             value=str(count))
        for status, count in counts.items()
        if isinstance(count, int) and status != "total" and (count or status != "missing")
    )  # fmt: skip


def _threat(run: RunView, row: Row) -> tuple[Fact, ...]:
    if not row.norm:
        return ()
    facts = []
    for fact in facts_of(table(run.manifest, "threat")):
        value = fact.value
        if fact.name == "eps" and row.eps is not None:
            value = eps_text(row.norm, row.eps)
        if fact.name == "target" and not row.targeted:
            continue
        facts.append(Fact(name=fact.name, value=value))
    return tuple(facts)


def _definitions(run: RunView, row: Row) -> tuple[Measure, ...]:
    found = run.summary.get("definitions") or {}
    order = {name: i for i, name in enumerate(DEFINITIONS)}
    measures = []
    for name in sorted(found, key=lambda name: (order.get(name, len(order)), name)):
        cell = cell_from(found[name], share=True)
        if cell.value is None and _does_not_apply(name, row):
            continue
        formula = DEFINITIONS[name].formula if name in DEFINITIONS else ""
        measures.append(
            Measure(name=name, title=definition_title(name), cell=cell, formula=formula)
        )
    return tuple(measures)


def _does_not_apply(name: str, row: Row) -> bool:
    """Return whether a definition is about a defense, attack or goal that the run lacks."""
    defended = name.startswith("defended_") or name in ("benefit", "harm")
    return (
        (defended and row.defended is None)
        or (name.endswith("asr_targeted") and not row.targeted)
        or (not row.norm and "clean" not in name and "certified" not in name and name != "harm")
    )


def _metrics(run: RunView, row: Row) -> tuple[Measure, ...]:
    entries = run.summary.get("metrics") or {}
    return tuple(
        Measure(
            name=name,
            title=metric_title(name),
            cell=cell,
            others=(cell_from((entries.get(name) or {}).get("over_successes")),),
        )
        for name, cell in row.metrics.items()
    )


def _sizes(run: RunView) -> tuple[Measure, ...]:
    """Return the sizes of the perturbations and how sure the model was."""
    entries = {**(run.summary.get("perturbation") or {}), **(run.summary.get("predictions") or {})}
    return tuple(
        Measure(
            name=name,
            title=SIZE_TITLES.get(name, name.replace("_", " ")),
            cell=cell_from(entry),
            others=(cell_from(entry.get("max")),),
        )
        for name, entry in entries.items()
        if isinstance(entry, Mapping)
    )


def _costs(run: RunView) -> tuple[Measure, ...]:
    found = run.summary.get("costs") or {}
    order = {name: i for i, name in enumerate(COST_TITLES)}
    measures = []
    for name in sorted(found, key=lambda name: (order.get(name, len(order)), name)):
        entry = found[name]
        cell = cell_from(entry)
        if not isinstance(entry, Mapping) or cell.value is None:
            continue
        title = COST_TITLES.get(name, name.replace("_", " "))
        others = tuple(cell_from(entry.get(key)) for key in ("median", "sum"))
        measures.append(Measure(name=name, title=title, cell=cell, others=others))
    return tuple(measures)


def _error(record: Mapping[str, Any]) -> ErrorNote:
    error = record.get("error") or {}
    return ErrorNote(
        video=str(record.get("video", "")),
        stage=str(error.get("stage") or ""),
        type=str(error.get("type") or ""),
        message=str(error.get("message") or ""),
    )


def _component(component: Any) -> Component:
    if not isinstance(component, Mapping):
        return Component(role="", name=str(component), source="", params="", weights="")
    source = " ".join(
        str(component[key]) for key in ("distribution", "version") if component.get(key)
    )
    return Component(
        role=str(component.get("role") or component.get("kind") or ""),
        name=str(component.get("ref") or component.get("name") or ""),
        source=source,
        params=one_line_of(component.get("params") or {}),
        weights=one_line_of(component.get("weights") or ""),
    )


def _config(run: RunView) -> str:
    """Return the resolved configuration: the runnable file, or the manifest's tables."""
    import json

    path = run.folder / "resolved.toml"
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        experiment = run.manifest.get("experiment") or {}
        return json.dumps(experiment, indent=2, ensure_ascii=False) if experiment else ""


def _identity(run: RunView) -> tuple[Fact, ...]:
    manifest = run.manifest
    dataset = manifest.get("dataset") or {}
    command = manifest.get("command")
    pairs = {
        "run": manifest.get("run"),
        "status": manifest.get("status"),
        "seed": manifest.get("seed"),
        "experiment hash": manifest.get("experiment_hash"),
        "evaluation version": manifest.get("evaluation_version"),
        "dataset fingerprint": dataset.get("fingerprint"),
        "started": manifest.get("started"),
        "ended": manifest.get("ended"),
        "command": " ".join(map(str, command)) if isinstance(command, list) else command,
    }
    return tuple(Fact(name=k, value=str(v)) for k, v in pairs.items() if v not in (None, ""))
