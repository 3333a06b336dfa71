"""``vcr info``: one component, from its spec and its parameter struct; its code is not imported."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from vcr_core.availability import availability
from vcr_core.cli.output import emit_facts, emit_json, emit_table, is_terminal, json_option
from vcr_core.components import params_type
from vcr_core.parameters import Parameter, parameters
from vcr_core.plugins import registry
from vcr_core.specs import (
    AttackSpec,
    DatasetSpec,
    DefenseSpec,
    MetricSpec,
    ModelSpec,
    ReporterSpec,
    to_plain,
)
from vcr_core.variants import variants

if TYPE_CHECKING:
    from vcr_core.plugins import Entry

Facts = list[tuple[str, object]]


@click.command("info", epilog="Example: vcr info attack/ifgsm")
@click.argument("ref")
@json_option
def command(ref: str, as_json: bool) -> None:
    """Explain the component REF: what it is, its parameters, where it comes from.

    REF is a name such as ifgsm; write attack/ifgsm or vcr-attacks/ifgsm where several components
    have that name.
    """
    entry, variant = registry().find_any(ref)
    params = parameters(params_type(entry.spec))
    names = variants([entry])[entry]
    if as_json:
        emit_json(_plain(entry, variant, names, params))
        return
    facts: Facts = [
        ("kind", entry.kind),
        ("name", entry.name),
        ("summary", entry.spec.summary),
        *_kind_facts(entry),
        ("variants", ", ".join(names)),
        ("availability", availability(entry.spec).text),
        ("requires", ", ".join(entry.spec.requires)),
        ("reference", entry.spec.reference),
        ("license", entry.spec.license),
        ("distribution", f"{entry.distribution} {entry.version}"),
        ("target", entry.spec.target),
        ("tags", ", ".join(sorted(entry.spec.tags))),
        ("example", entry.spec.example),
    ]
    emit_facts([(name, value) for name, value in facts if value not in ("", None)])
    if params:
        if is_terminal():
            click.echo()
        emit_table(
            ["parameter", "type", "default", "allowed", "description"],
            [_row(param) for param in params],
            styles={"parameter": "bold"},
        )
    else:
        emit_facts([("parameters", "none")])


def _row(param: Parameter) -> list[str]:
    default = "required" if param.required else _value(param.default)
    return [param.name, param.type, default, param.allowed, param.description]


def _value(value: Any) -> str:
    return "none" if value is None else json.dumps(value, ensure_ascii=False)


def _kind_facts(entry: Entry) -> Facts:
    spec = entry.spec
    if isinstance(spec, AttackSpec):
        return [
            ("access", spec.access),
            ("stage", spec.stage if spec.access == "none" else ""),
            ("norms", ", ".join(sorted(spec.norms))),
            ("targeted", _yes(spec.targeted)),
            ("untargeted", _yes(spec.untargeted)),
            ("stochastic", _yes(spec.stochastic)),
            ("offline step", _yes(spec.prepares)),
        ]
    if isinstance(spec, DefenseSpec):
        return [
            ("defense kind", spec.defense_kind),
            ("gradient", spec.gradient),
            ("stochastic", _yes(spec.stochastic)),
            ("preserves time", _yes(spec.preserves_time)),
            ("may change labels", _yes(spec.changes_labels)),
            ("cost", spec.cost),
            ("offline step", _yes(spec.prepares)),
            ("certifies", "yes, with certify_n above 0" if spec.certifies else ""),
        ]
    if isinstance(spec, ModelSpec):
        clip = spec.clip
        return [
            ("label space", f"{spec.label_space} ({spec.num_classes} classes)"),
            ("clip", f"{clip.frames} frames, stride {clip.stride}, {clip.size} px"),
            ("views", f"{clip.clips} clips x {clip.crops} crops, light {clip.light_clips}"),
            ("differentiable", _yes(spec.differentiable)),
            ("feature layers", ", ".join(spec.feature_layers)),
        ]
    if isinstance(spec, MetricSpec):
        low, high = ("" if bound is None else f"{bound:g}" for bound in spec.value_range)
        return [
            ("better", "higher" if spec.higher_is_better else "lower"),
            ("unit", spec.unit),
            ("range", f"{low or '-inf'} to {high or 'inf'}"),
            ("identity value", spec.identity_value),
            ("symmetric", _yes(spec.symmetric)),
            ("needs", spec.needs),
            ("keys", ", ".join(spec.keys)),
        ]
    if isinstance(spec, DatasetSpec):
        return [("label space", spec.label_space), ("generated", _yes(spec.generated))]
    if isinstance(spec, ReporterSpec):
        return [("format", spec.format)]
    return []


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _plain(entry: Entry, variant: str, names: list[str], params: list[Parameter]) -> dict[str, Any]:
    state = availability(entry.spec)
    return {
        "schema": 1,
        "component": {
            **to_plain(entry.spec),
            "qualified": entry.qualified,
            "distribution": entry.distribution,
            "version": entry.version,
            "location": entry.location,
            "available": state.ok,
            "availability": state.text,
            "variants": names,
        },
        "variant": variant,
        "parameters": [asdict(param) for param in params],
    }
