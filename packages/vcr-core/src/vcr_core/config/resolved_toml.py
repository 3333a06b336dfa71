"""The resolved run file: every default written out, nothing of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import inspect

from vcr_core.__about__ import __version__
from vcr_core.components import params_type
from vcr_core.config.check import plain
from vcr_core.config.cross_checks import UNIT_NORMS
from vcr_core.config.fraction_text import levels_text, short_text
from vcr_core.config.schema import DatasetKeys, ProtocolConfig, RunFile, ThreatConfig
from vcr_core.config.toml_text import to_toml
from vcr_core.config.wording import members

if TYPE_CHECKING:
    from vcr_core.config.experiment import Chosen, Experiment
    from vcr_core.config.layered import Layered
    from vcr_core.specs import ComponentSpec

_HEADER = f"""\
# Resolved by vcr-core {__version__}; run it again with: vcr run FILE
# [paths], [runtime] and [executor] belong to a machine and are not in here.
"""


def as_run_file(document: dict[str, Any]) -> str:
    """Return :func:`resolved_document` as the text of a run file."""
    return _HEADER + "\n" + to_toml(document)


def resolved_document(experiment: Experiment, full: Layered) -> dict[str, Any]:
    """Return a run file that gives the same experiment on any machine, as tables.

    Args:
        experiment: what was decided.
        full: the layers, to write out an absent value where a layer below would fill it in.
    """
    is_fraction = experiment.threat.norm in UNIT_NORMS
    threat = _core_table(experiment.threat, ThreatConfig(), full, "threat")
    if is_fraction:
        threat["eps"] = levels_text(experiment.threat.eps)
        if experiment.threat.per_frame_eps is not None:
            threat["per_frame_eps"] = [levels_text(e) for e in experiment.threat.per_frame_eps]
    elif experiment.threat.norm == "none" and full.get(("threat", "eps")) is None:
        del threat["eps"]
    keys = _core_table(experiment.dataset_keys, DatasetKeys(), full, "dataset")
    del keys["name"]
    document: dict[str, Any] = {
        "schema": RunFile().schema,
        "seed": experiment.seed,
        "dataset": {**_component(experiment.dataset, full, ("dataset",)), **keys},
        "model": _component(experiment.model, full, ("model",)),
    }
    if experiment.source is not None:
        document["source"] = _component(experiment.source, full, ("source",))
    if experiment.attack is not None:
        document["attack"] = _component(experiment.attack, full, ("attack",))
    document["threat"] = threat
    chain = [
        _component(defense, full, ("defense", str(index)))
        for index, defense in enumerate(experiment.defenses)
    ]
    if chain:
        document["defense"] = chain[0] if len(chain) == 1 else chain
    document["protocol"] = _core_table(experiment.protocol, ProtocolConfig(), full, "protocol")
    document["metrics"] = _metrics(experiment, full)
    if experiment.prepares or experiment.prepared_defenses:
        document["prepare"] = plain(experiment.prepare)
    document["output"] = plain(experiment.output)
    return document


def _core_table(
    struct: msgspec.Struct, defaults: msgspec.Struct, full: Layered, name: str
) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for key, value in plain(struct).items():
        # TOML has no null: an absent value is written where leaving it out would not mean it.
        is_masked = value is None and (
            getattr(defaults, key) is not None or full.get((name, key)) is not None
        )
        table[key] = "none" if is_masked else value
    return table


def _component(chosen: Chosen, full: Layered, path: tuple[str, ...]) -> dict[str, Any]:
    table: dict[str, Any] = {"name": chosen.qualified}
    for key, value in chosen.params.items():
        table[key] = _param(chosen.spec, key, value, full, path)
    changed = {k: v for k, v in chosen.attack_params.items() if v != chosen.params.get(k)}
    if changed:
        inner = (*path, "attack_params")
        table["attack_params"] = {
            key: _param(chosen.spec, key, value, full, inner) for key, value in changed.items()
        }
    return table


def _metrics(experiment: Experiment, full: Layered) -> dict[str, Any]:
    params = {
        metric.spec.name: {
            key: _param(metric.spec, key, value, full, ("metrics", "params", metric.spec.name))
            for key, value in metric.params.items()
        }
        for metric in experiment.metrics
        if metric.params
    }
    table: dict[str, Any] = {"names": [metric.qualified for metric in experiment.metrics]}
    if params:
        table["params"] = params
    return table


def _param(spec: ComponentSpec, key: str, value: Any, full: Layered, path: tuple[str, ...]) -> Any:
    if value is None:
        return _absent(spec, key, full, path)
    return _shortened(value)


def _absent(spec: ComponentSpec, key: str, full: Layered, path: tuple[str, ...]) -> str | None:
    struct = params_type(spec)
    if struct is None:
        return None
    info = next(f for f in msgspec.structs.fields(struct) if f.encode_name == key)
    takes_text = any(
        isinstance(part, inspect.StrType) for part in members(inspect.type_info(info.type))
    )
    is_masked = info.default is not None or full.get((*path, key)) is not None
    return "none" if is_masked and not takes_text else None


def _shortened(value: Any) -> Any:
    if isinstance(value, float):
        return short_text(value)
    if isinstance(value, list):
        return [_shortened(part) for part in value]
    return value
