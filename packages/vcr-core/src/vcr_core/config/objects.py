"""Experiments whose components are objects: what the Python API resolves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vcr_core.adhoc import chosen_for
from vcr_core.config.check import Problems
from vcr_core.config.choice import choose, name_component
from vcr_core.config.command_text import LOCAL
from vcr_core.config.experiment import Chosen
from vcr_core.config.resolve import Resolved, resolve_run
from vcr_core.errors import ComponentUnavailable, ConfigError, UsageError
from vcr_core.plugins import Entry, with_entries

if TYPE_CHECKING:
    from vcr_core.engine.setup import Parts
    from vcr_core.specs import Kind


def choose_component(kind: Kind, ref: str, params: Mapping[str, Any]) -> Chosen:
    """Return a component by reference with checked parameters, those of its preset below.

    Raises:
        ConfigError: with every problem.
        ComponentUnavailable: if its plugin or a requirement is missing.
    """
    problems = Problems()
    named = name_component(kind, ref, (kind,), problems)
    chosen = None
    if named is not None:
        preset = named.preset[1].get("params", {}) if named.preset else {}
        chosen = choose(named, {**preset, **params}, (kind,), problems)
    if problems.found:
        raise ConfigError(problems.found)
    if chosen is None:
        raise ComponentUnavailable("\n".join(problems.unavailable))
    return chosen


def resolve_objects(
    tables: Mapping[str, Any],
    *,
    model: Any,
    attack: Any,
    defenses: Sequence[Any],
    dataset: Any,
    metrics: Sequence[Any] | None,
    limit: int | None,
    source: Any = None,
) -> tuple[Resolved, Parts]:
    """Return the resolved experiment and the objects that stand for its components.

    A component is a reference (text) or an object. An object that ``load`` made counts as what it
    was made from; any other is known by its class, under the distribution ``local``.

    Raises:
        UsageError: if model and source are two objects that cannot be told apart.
    """
    from vcr_core.engine.setup import Parts

    desk = _Desk()
    document: dict[str, Any] = {key: value for key, value in tables.items() if value}
    document["dataset"] = desk.table("dataset", dataset)
    if limit is not None:
        document["dataset"]["limit"] = limit
    document["model"] = desk.table("model", model)
    if source is not None:
        document["source"] = desk.table("model", source)
    if attack is not None:
        document["attack"] = desk.table("attack", attack)
    if defenses:
        document["defense"] = [desk.table("defense", defense) for defense in defenses]
    if metrics is not None:
        listed = [desk.table("metric", metric) for metric in metrics]
        params = {t["name"]: {k: v for k, v in t.items() if k != "name"} for t in listed}
        document["metrics"] = {"names": list(params), "params": params}
    with with_entries(desk.entries):
        resolved = resolve_run(document)
    experiment = resolved.experiment
    is_other = source is not None and not isinstance(source, str) and source is not model
    if is_other and experiment.source is None and experiment.model.distribution == LOCAL:
        raise UsageError(
            f"model and source are both known as {experiment.model.ref!r}: give one of them an "
            "attribute 'name', or pass name=… to as_classifier"
        )
    return resolved, Parts(
        model=None if isinstance(model, str) else model,
        attack=None if isinstance(attack, str) else attack,
        defenses=_objects(defenses),
        metrics=None if metrics is None else _objects(metrics),
        dataset=None if isinstance(dataset, str) else dataset,
        source=None if isinstance(source, str) else source,
    )


def _objects(components: Sequence[Any]) -> Sequence[Any] | None:
    """Return the components as objects, loading those that are references."""
    from vcr_core.api import load

    if all(isinstance(component, str) for component in components):
        return None
    kind: Kind = "defense" if any(hasattr(c, "wrap") for c in components) else "metric"
    return [load(kind, c) if isinstance(c, str) else c for c in components]


class _Desk:
    """Turns components into tables of a run file and collects entries for foreign objects."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def table(self, kind: Kind, component: Any) -> dict[str, Any]:
        if isinstance(component, str):
            return {"name": component}
        chosen = chosen_for(kind, component)
        if chosen.distribution == "local":
            entry = Entry(spec=chosen.spec, distribution="local", version=chosen.version)
            if all(known.spec != chosen.spec for known in self.entries):
                self.entries.append(entry)
        return {"name": chosen.qualified, **chosen.params}
