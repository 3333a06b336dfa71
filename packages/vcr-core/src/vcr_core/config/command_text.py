"""An experiment as the options of a command line: what differs from the defaults."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import msgspec

from vcr_core.components import params_type
from vcr_core.config.check import plain
from vcr_core.config.fraction_text import levels_text, short_text
from vcr_core.config.schema import DatasetKeys, PrepareConfig, ProtocolConfig, RunFile, ThreatConfig
from vcr_core.config.toml_text import parse_value, to_toml
from vcr_core.plugins import registry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from vcr_core.config.experiment import Chosen, Experiment

LOCAL = "local"
"""Distribution of objects that were given from Python; no command line can name them."""


def command_text(command: str, experiment: Experiment) -> str:
    """Return ``vcr COMMAND`` with options that resolve to this experiment, ready for a shell.

    Metrics, output and what belongs to a machine are left out. For components that are objects
    from Python the result is ``""``.
    """
    named = [experiment.model, experiment.source, experiment.attack, experiment.dataset]
    named += experiment.defenses
    if any(chosen is not None and chosen.distribution == LOCAL for chosen in named):
        return ""
    return shlex.join(["vcr", command, *_options(experiment)])


def _options(experiment: Experiment) -> Iterator[str]:
    keys, threat = experiment.dataset_keys, experiment.threat
    yield from ("--model", _name(experiment.model, with_variant=True))
    if experiment.attack is not None:
        yield from ("--attack", _name(experiment.attack))
    if experiment.defenses:
        yield from ("--defense", "+".join(_name(link) for link in experiment.defenses))
    if experiment.dataset.spec.name != DatasetKeys().name:
        yield from ("--dataset", _name(experiment.dataset))
    if keys.limit is not None:
        yield from ("--limit", str(keys.limit))
    if experiment.seed != RunFile().seed:
        yield from ("--seed", str(experiment.seed))
    if threat.norm != "none" and threat.eps != ThreatConfig().eps:
        # repr keeps every digit; a number with a fraction text is written as one.
        yield from ("--eps", str(levels_text(threat.eps) if threat.norm == "linf" else threat.eps))
    for key, value in _settings(experiment):
        yield from ("--set", f"{key}={_value(value)}")


def _settings(experiment: Experiment) -> Iterator[tuple[str, Any]]:
    yield from _parameters("model", experiment.model)
    if experiment.source is not None:
        yield "source.name", _name(experiment.source, with_variant=True)
        yield from _parameters("source", experiment.source)
    if experiment.attack is not None:
        yield from _parameters("attack", experiment.attack)
    yield from _parameters("dataset", experiment.dataset)
    for index, link in enumerate(experiment.defenses):
        place = "defense" if len(experiment.defenses) == 1 else f"defense.{index}"
        yield from _parameters(place, link)
        for key, value in _changed(link.attack_params, link.params):
            yield f"{place}.attack_params.{key}", value
    for name, table, default, ignored in (
        ("dataset", experiment.dataset_keys, DatasetKeys(), ("name", "limit")),
        ("threat", experiment.threat, ThreatConfig(), ("eps",)),
        ("protocol", experiment.protocol, ProtocolConfig(), ()),
        ("prepare", experiment.prepare, PrepareConfig(), ()),
    ):
        for key, value in _changed(plain(table), plain(default)):
            if key not in ignored:
                yield f"{name}.{key}", value


def _parameters(place: str, chosen: Chosen) -> Iterator[tuple[str, Any]]:
    struct = params_type(chosen.spec)
    if struct is None:
        return
    defaults = {}
    for info in msgspec.structs.fields(struct):
        if info.default is not msgspec.NODEFAULT:
            defaults[info.encode_name] = plain(info.default)
        elif info.default_factory is not msgspec.NODEFAULT:
            defaults[info.encode_name] = plain(info.default_factory())
    for key, value in _changed(chosen.params, defaults):
        yield f"{place}.{key}", value


def _changed(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if value is None and defaults.get(key) is None:
            continue
        if key not in defaults or defaults[key] != value:
            yield key, value


def _name(chosen: Chosen, *, with_variant: bool = False) -> str:
    # The variant of anything but a model is a preset; its parameters are written out.
    name = chosen.ref if with_variant else chosen.spec.name
    ambiguous = registry().ambiguous(chosen.spec.kind, chosen.spec.name)
    return f"{chosen.distribution}/{name}" if ambiguous else name


def _value(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, float):
        return str(short_text(value))
    if isinstance(value, str) and parse_value(value) == value:
        return value
    return to_toml({"v": value}).partition("=")[2].strip()
