"""``vcr info``: one component, from its spec and its parameter struct; its code is not imported."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from vcr_core.availability import Availability, readiness
from vcr_core.cli.output import emit_facts, emit_json, emit_table, is_terminal, json_option
from vcr_core.components import params_type
from vcr_core.errors import UsageError
from vcr_core.parameters import Parameter, parameters
from vcr_core.plugins import registry
from vcr_core.specs import (
    AttackSpec,
    Corruption,
    DatasetSpec,
    DefenseSpec,
    MetricSpec,
    ModelSpec,
    ReporterSpec,
    WeightSpec,
    to_plain,
)
from vcr_core.variants import variants

if TYPE_CHECKING:
    from vcr_core.plugins import Entry

Facts = list[tuple[str, object]]


@click.command("info", epilog="Example: vcr info attack/ifgsm")
@click.argument("ref")
@click.option("--measure", is_flag=True, help="Of a model: count and time one view here.")
@json_option
def command(ref: str, measure: bool, as_json: bool) -> None:
    """Explain the component REF: what it is, its parameters, where it comes from.

    REF is a name such as ifgsm; write attack/ifgsm or vcr-attacks/ifgsm where several components
    have that name.
    """
    entry, variant = registry().find_any(ref)
    cost = _cost(entry, ref) if measure else None
    params = parameters(params_type(entry.spec))
    names = variants([entry])[entry]
    if as_json:
        emit_json(_plain(entry, variant, names, params) | ({"measured": cost} if cost else {}))
        return
    facts: Facts = [
        ("kind", entry.kind),
        ("name", entry.name),
        ("summary", entry.spec.summary),
        *_kind_facts(entry, variant),
        *(_measured(cost) if cost else ()),
        ("variants", ", ".join(names)),
        ("availability", _state(entry, variant).text),
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


def component_facts(entry: Entry, variant: str) -> Facts:
    """Return what is known about a component wherever it is installed, without empty facts."""
    facts: Facts = [
        ("summary", entry.spec.summary),
        *_kind_facts(entry, variant),
        ("reference", entry.spec.reference),
        ("license", entry.spec.license),
        ("distribution", f"{entry.distribution} {entry.version}"),
        ("tags", ", ".join(sorted(entry.spec.tags))),
    ]
    return [(name, value) for name, value in facts if value not in ("", None)]


def _cost(entry: Entry, ref: str) -> dict[str, Any]:
    if entry.kind != "model":
        raise UsageError(f"--measure is for models, and {entry} is none")
    from vcr_core.config.objects import choose_component
    from vcr_core.measuring import measure

    return measure(choose_component("model", ref.removeprefix("model/"), {}))


def _measured(cost: dict[str, Any]) -> Facts:
    from vcr_core.measuring import sentences

    return list(sentences(cost))


def _row(param: Parameter) -> list[str]:
    default = "required" if param.required else _value(param.default)
    return [param.name, param.type, default, param.allowed, param.description]


def _value(value: Any) -> str:
    return "none" if value is None else json.dumps(value, ensure_ascii=False)


def _kind_facts(entry: Entry, variant: str) -> Facts:
    spec = entry.spec
    if isinstance(spec, AttackSpec):
        return [
            ("access", spec.access),
            ("stage", spec.stage if spec.access == "none" else ""),
            *_corruption_facts(spec.corruption),
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
        return _model_facts(spec, variant)
    if isinstance(spec, MetricSpec):
        low, high = ("" if bound is None else f"{bound:g}" for bound in spec.value_range)
        return [
            ("better", "higher" if spec.higher_is_better else "lower"),
            ("unit", spec.unit),
            ("range", f"{low or '-inf'} to {high or 'inf'}"),
            ("identity value", _identity(spec)),
            ("symmetric", _yes(spec.symmetric)),
            ("needs", spec.needs),
            ("smallest frame", f"{spec.min_size} px" if spec.min_size > 1 else ""),
            ("needs weights", _yes(spec.needs_weights)),
            ("weight files", f"vcr weights list {spec.name}" if spec.weights else ""),
            ("differentiable", _yes(spec.differentiable)),
            ("measured beside", "judging (runtime.overlap_metrics)" if spec.concurrent else ""),
            ("keys", ", ".join(spec.keys)),
        ]
    if isinstance(spec, DatasetSpec):
        return [("label space", spec.label_space), ("generated", _yes(spec.generated))]
    if isinstance(spec, ReporterSpec):
        return [("format", spec.format)]
    return []


def _weights(spec: ModelSpec, variant: str) -> WeightSpec | None:
    named = [weights for weights in spec.weights if weights.variant == variant]
    return next(iter(named or spec.weights), None)


def _state(entry: Entry, variant: str) -> Availability:
    """Return whether the component is usable; of a named variant, whether that one is."""
    spec = entry.spec
    named = _weights(spec, variant) if isinstance(spec, ModelSpec) and variant else None
    return readiness(spec, None if named is None else (named,))


def _model_facts(spec: ModelSpec, variant: str) -> Facts:
    weights = _weights(spec, variant)
    clip = (weights.clip if weights else None) or spec.clip
    space = (weights.label_space if weights else "") or spec.label_space
    facts: Facts = [
        ("label space", f"{space} ({spec.num_classes} classes)" if space else "by parameters"),
        ("clip", f"{clip.frames} frames, stride {clip.stride}, {clip.size} px"),
        ("sampling", clip.policy),
        ("views", f"{clip.clips} clips x {clip.crops} crops, light {clip.light_clips}"),
        ("differentiable", _yes(spec.differentiable)),
        ("feature layers", ", ".join(spec.feature_layers)),
    ]
    if weights is not None:
        accuracy = weights.clean_accuracy
        facts += [
            ("weights", weights.variant or "default"),
            ("published accuracy", "" if accuracy is None else f"{accuracy:.2%}"),
            ("licence of weights", weights.license),
            *weights.facts,
            ("address", "" if weights.url.startswith("package:") else weights.url),
        ]
    return facts


def _corruption_facts(corruption: Corruption | None) -> Facts:
    if corruption is None:
        return []
    suites = []
    for member in corruption.member_of:
        asked = ", ".join(f"{name} = {_value(value)}" for name, value in member.params)
        with_params = f" with {asked}" if asked else ""
        suites.append(f"{member.suite.name} (version {member.suite.version}){with_params}")
    return [
        ("group", corruption.group),
        ("severities", f"1 to {corruption.severities}"),
        ("changes length", _yes(corruption.changes_length)),
        ("suites", "; ".join(suites)),
    ]


def _identity(spec: MetricSpec) -> str:
    if spec.identity_value is None:
        return "none, identical clips have no value"
    slack = f", give or take {spec.identity_slack:g}" if spec.identity_slack else ""
    return f"{spec.identity_value:g}{slack}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _plain(entry: Entry, variant: str, names: list[str], params: list[Parameter]) -> dict[str, Any]:
    state = _state(entry, variant)
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
