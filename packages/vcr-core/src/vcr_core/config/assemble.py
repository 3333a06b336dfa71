"""Puts the layers together and checks each section; the only maker of an ``Experiment``."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import msgspec

from vcr_core import plugins
from vcr_core.config.check import KeyPath, Problems, check_table
from vcr_core.config.choice import Named, choose, name_component
from vcr_core.config.cross_checks import UNIT_NORMS, check_eps, check_threat
from vcr_core.config.document import leave_executor
from vcr_core.config.experiment import Chosen, ExecutorChoice, Experiment
from vcr_core.config.fraction_text import snap
from vcr_core.config.layered import Layered
from vcr_core.config.schema import (
    DatasetKeys,
    ExecutorConfig,
    MetricsConfig,
    OutputConfig,
    PathsConfig,
    PrepareConfig,
    ProtocolConfig,
    RunFile,
    RuntimeConfig,
    ThreatConfig,
)
from vcr_core.config.wording import found, hint
from vcr_core.errors import NotAvailable, UsageError
from vcr_core.specs import AttackSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from vcr_core.specs import Kind

CORE_KEYS: dict[str, tuple[str, ...]] = {
    "dataset": DatasetKeys.__struct_fields__,
    "model": ("name",),
    "source": ("name",),
    "attack": ("name",),
    "defense": ("name", "attack_params"),
    "executor": ExecutorConfig.__struct_fields__,
}
_NO_DEFAULT_RADIUS = ("l2", "l1", "l0")


def assemble(
    asked: Layered, local: Iterable[tuple[str, dict[str, Any]]], problems: Problems
) -> tuple[Experiment | None, Layered]:
    """Return the experiment, or ``None`` after adding problems, and all layers merged.

    Args:
        asked: the run file with everything from outside laid over it.
        local: labels and tables of the local files, weakest first.
        problems: where problems go.
    """
    names = _Names.look_up(asked, problems)
    full = _merged(asked, local, names)
    problems.layer_of = _layers(full)
    _infer_norm(full, names)
    sections = _Sections(full, names, problems)
    return sections.experiment(), full


@dataclass(slots=True)
class _Names:
    """The components that a run names; ``None`` where a name could not be looked up."""

    dataset: Named | None = None
    model: Named | None = None
    source: Named | None = None
    attack: Named | None = None
    defenses: list[Named | None] = field(default_factory=list)
    metrics: list[Named | None] = field(default_factory=list)

    @classmethod
    def look_up(cls, asked: Layered, problems: Problems) -> _Names:
        names = cls()
        problems.layer_of = _layers(asked)
        dataset = asked.get(("dataset", "name"), DatasetKeys().name)
        names.dataset = name_component("dataset", dataset, ("dataset", "name"), problems)
        names.model = _required(asked, "model", ("model",), problems)
        if asked.get(("source",)) is not None:
            names.source = _required(asked, "model", ("source",), problems)
        if asked.get(("attack",)) is not None:
            names.attack = _required(asked, "attack", ("attack",), problems)
        chain = asked.get(("defense",)) or []
        for index in range(len(chain)):
            path = ("defense", str(index))
            names.defenses.append(_required(asked, "defense", path, problems))
        names.metrics = _metric_names(asked, problems)
        return names

    def presets(self) -> Iterable[tuple[KeyPath, Named]]:
        """Yield every component that brings a preset, with the place of its parameters."""
        yield from _with_preset(("dataset",), self.dataset)
        yield from _with_preset(("model",), self.model)
        yield from _with_preset(("source",), self.source)
        for metric in self.metrics:
            if metric is not None:
                yield from _with_preset(("metrics", "params", metric.entry.name), metric)
        for index, defense in enumerate(self.defenses):
            yield from _with_preset(("defense", str(index)), defense)
        yield from _with_preset(("attack",), self.attack)


def _with_preset(path: KeyPath, named: Named | None) -> Iterable[tuple[KeyPath, Named]]:
    if named is not None and named.preset is not None:
        yield path, named


def _required(asked: Layered, kind: Kind, path: KeyPath, problems: Problems) -> Named | None:
    ref = asked.get((*path, "name"))
    if ref is not None:
        return name_component(kind, ref, _short((*path, "name"), asked), problems)
    if path in problems.keys:
        return None  # what stands in its place is a problem already
    names = ", ".join(entry.name for entry in plugins.registry().entries(kind)[:6])
    leave_out = f", or leave [{path[0]}] out" if path[0] != "model" else ""
    problems.add(
        _short((*path, "name"), asked),
        f"missing; name a {kind}{leave_out} (vcr list {kind}: {names or 'none installed'})",
    )
    return None


def _metric_names(asked: Layered, problems: Problems) -> list[Named | None]:
    path = ("metrics", "names")
    refs = asked.get(path)
    if refs is None:
        known = {entry.name for entry in plugins.registry().entries("metric")}
        refs = [name for name in MetricsConfig().names if name in known]
    if not isinstance(refs, list):
        return []  # the check of [metrics] says so
    named = [
        name_component("metric", ref, path, problems) if isinstance(ref, str) else None
        for ref in refs
    ]
    seen: set[str] = set()
    for metric in named:
        if metric is not None and metric.entry.name in seen:
            problems.add(path, f"{metric.entry.name!r} is named twice; name each metric once")
        elif metric is not None:
            seen.add(metric.entry.name)
    return named


def _layers(layered: Layered) -> Callable[[KeyPath], str]:
    """Return where to look for a key, also for one in the short form of :func:`_short`."""

    def layer_of(path: KeyPath) -> str:
        if path[:1] == ("defense",) and len(path) > 1 and not path[1].isdecimal():
            path = (path[0], "0", *path[1:])
        return layered.nearest_layer(path)

    return layer_of


def _short(path: KeyPath, layered: Layered) -> KeyPath:
    """Return ``defense.sigma`` for ``defense.0.sigma`` where the chain has one defense."""
    if path[0] == "defense" and len(path) > 1 and len(layered.get(("defense",)) or []) == 1:
        return (path[0], *path[2:])
    return path


def _merged(asked: Layered, local: Iterable[tuple[str, dict[str, Any]]], names: _Names) -> Layered:
    full = Layered()
    chain = asked.get(("defense",))
    if chain:
        full.data["defense"] = [{} for _ in chain]
    for label, tables in local:
        chosen = tables.get("executor")
        leave_executor(full, chosen.get("name") if isinstance(chosen, dict) else None, label)
        full.merge(tables, label)
    for path, named in names.presets():
        label, preset = cast("tuple[str, dict[str, Any]]", named.preset)
        full.merge(preset.get("params", {}), label, path)
        full.merge({key: preset[key] for key in ("threat", "protocol") if key in preset}, label)
    leave_executor(full, asked.get(("executor", "name")), asked.layer_of(("executor", "name")))
    full.merge_layered(asked)
    return full


def _infer_norm(full: Layered, names: _Names) -> None:
    """Set the norm that the attack needs where none is asked for and ``linf`` is none of its."""
    if names.attack is None or full.get(("threat", "norm")) is not None:
        return
    spec = cast("AttackSpec", names.attack.entry.spec)
    if "linf" not in spec.norms:
        norm = "none" if "none" in spec.norms else min(spec.norms)
        full.put(("threat", "norm"), norm, f"spec of {spec.name}")


class _Sections:
    """Checks one section after another, so that every section's problems are reported."""

    def __init__(self, full: Layered, names: _Names, problems: Problems) -> None:
        self.full = full
        self.names = names
        self.problems = problems

    def experiment(self) -> Experiment | None:
        head = self._head()
        dataset_keys = self._core_table(DatasetKeys, "dataset", CORE_KEYS["dataset"])
        dataset = self._chosen(self.names.dataset, ("dataset",))
        model = self._chosen(self.names.model, ("model",))
        source = self._chosen(self.names.source, ("source",))
        attack = self._chosen(self.names.attack, ("attack",))
        defenses = [
            self._chosen(named, ("defense", str(index)))
            for index, named in enumerate(self.names.defenses)
        ]
        threat = self._threat()
        protocol = self._core_table(ProtocolConfig, "protocol")
        metrics = self._metrics()
        prepare = self._core_table(PrepareConfig, "prepare")
        paths = self._core_table(PathsConfig, "paths")
        runtime = self._core_table(RuntimeConfig, "runtime")
        executor = self._executor()
        output = self._core_table(OutputConfig, "output")
        if self.problems:
            return None
        return Experiment(
            seed=head.seed if head else RunFile().seed,
            dataset_keys=cast("DatasetKeys", dataset_keys),
            dataset=cast("Chosen", dataset),
            model=cast("Chosen", model),
            attack=attack,
            defenses=tuple(cast("list[Chosen]", defenses)),
            metrics=tuple(cast("list[Chosen]", metrics)),
            threat=cast("ThreatConfig", threat),
            protocol=cast("ProtocolConfig", protocol),
            paths=cast("PathsConfig", paths),
            runtime=cast("RuntimeConfig", runtime),
            executor=cast("ExecutorChoice", executor),
            output=cast("OutputConfig", output),
            prepare=cast("PrepareConfig", prepare),
            # An attack on the evaluated model itself has no other source.
            source=None if source == model else source,
        )

    def _head(self) -> RunFile | None:
        scalars: dict[str, Any] = {
            key: self.full.data[key] for key in ("schema", "seed") if key in self.full.data
        }
        return check_table(RunFile, scalars, (), self.problems, "a run file")

    def _core_table(
        self, struct: type[Any], name: str, keys: tuple[str, ...] | None = None
    ) -> Any | None:
        table = self.full.get((name,)) or {}
        if not isinstance(table, dict):
            self.problems.add((name,), f"found {found(table)}; allowed: a table, [{name}]")
            return None
        own = {key: value for key, value in table.items() if keys is None or key in keys}
        if name == "dataset":
            own["name"] = str(own.get("name", DatasetKeys().name))
        return check_table(struct, own, (name,), self.problems, f"[{name}]")

    def _chosen(self, named: Named | None, path: KeyPath) -> Chosen | None:
        table = self.full.get(path) or {}
        if named is None:
            return None
        own = {key: value for key, value in table.items() if key not in CORE_KEYS[path[0]]}
        chosen = choose(named, own, _short(path, self.full), self.problems)
        if chosen is not None and "attack_params" in table:
            return self._under_attack(named, chosen, own, path)
        return chosen

    def _under_attack(
        self, named: Named, chosen: Chosen, own: dict[str, Any], path: KeyPath
    ) -> Chosen | None:
        """Return a defense with the parameters that it has while an attack looks at it."""
        inner = _short((*path, "attack_params"), self.full)
        changed = self.full.get((*path, "attack_params"))
        if not isinstance(changed, dict):
            self.problems.add(inner, f"found {found(changed)}; allowed: a table of parameters")
            return None
        looked_at = choose(named, {**own, **changed}, inner, self.problems)
        if looked_at is None or looked_at.params == chosen.params:
            return looked_at
        return replace(chosen, attack_params=looked_at.params)

    def _threat(self) -> ThreatConfig | None:
        table = self.full.get(("threat",)) or {}
        norm = table.get("norm", ThreatConfig().norm) if isinstance(table, dict) else "linf"
        threat = cast("ThreatConfig | None", self._core_table(ThreatConfig, "threat"))
        if isinstance(table, dict) and isinstance(norm, str):
            check_eps(table, norm, self.problems)
        if threat is None:
            return None
        check_threat(threat, self.problems)
        if self.names.attack is not None and norm in _NO_DEFAULT_RADIUS and "eps" not in table:
            self.problems.add(
                ("threat", "eps"),
                f"missing; norm {norm!r} has no default radius (8/255 is meant for 'linf')",
            )
        per_frame = threat.per_frame_eps
        exact = snap(threat.eps) if norm in UNIT_NORMS else threat.eps
        return msgspec.structs.replace(
            threat, eps=exact, per_frame_eps=per_frame and [snap(eps) for eps in per_frame]
        )

    def _metrics(self) -> list[Chosen | None]:
        config = self._core_table(MetricsConfig, "metrics")
        if config is None:
            return []
        tables = self._metric_tables(config)
        return [
            self._chosen_metric(named, tables) for named in self.names.metrics if named is not None
        ]

    def _chosen_metric(
        self, named: Named, tables: dict[str, tuple[str, dict[str, Any]]]
    ) -> Chosen | None:
        key, table = tables.get(named.entry.qualified, (named.entry.name, {}))
        return choose(named, table, ("metrics", "params", key), self.problems)

    def _metric_tables(self, config: MetricsConfig) -> dict[str, tuple[str, dict[str, Any]]]:
        """Return parameter tables by qualified name; a key may be any reference to the metric."""
        used = {named.entry.qualified: named.entry.name for named in self.names.metrics if named}
        tables: dict[str, tuple[str, dict[str, Any]]] = {}
        for key, table in config.params.items():
            path = ("metrics", "params", key)
            try:
                entry = plugins.registry().find("metric", key)[0].qualified
            except (UsageError, NotAvailable):
                entry = next((q for q, name in used.items() if name == key), "")
            if entry not in used:
                near = hint(key, used.values())
                names = ", ".join(used.values()) or "none"
                self.problems.add(path, f"not in metrics.names{near} (metrics.names: {names})")
                continue
            before = tables.get(entry, (key, {}))[1]
            tables[entry] = (key, {**before, **table})
        return tables

    def _executor(self) -> ExecutorChoice | None:
        config = cast(
            "ExecutorConfig | None",
            self._core_table(ExecutorConfig, "executor", CORE_KEYS["executor"]),
        )
        if config is None:
            return None
        if not plugins.registry().entries("executor"):
            return ExecutorChoice(name=config.name, workers=config.workers)
        named = name_component("executor", config.name, ("executor", "name"), self.problems)
        chosen = self._chosen(named, ("executor",))
        if named is None or chosen is None:
            return None
        return ExecutorChoice(name=named.entry.name, workers=config.workers, params=chosen.params)
