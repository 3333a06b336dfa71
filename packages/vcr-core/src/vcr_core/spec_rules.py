"""The rules that a spec must keep before the registry takes it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from vcr_core import specs
from vcr_core.refs import NAME_LENGTH, is_canonical, literal_values

if TYPE_CHECKING:
    from collections.abc import Iterator

_DOTTED = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"
_ATTRIBUTE = re.compile(rf"{_DOTTED}:{_DOTTED}")
_VARIANT = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")

SPEC_TYPES: dict[specs.Kind, type[specs.ComponentSpec]] = {
    "model": specs.ModelSpec,
    "attack": specs.AttackSpec,
    "defense": specs.DefenseSpec,
    "metric": specs.MetricSpec,
    "dataset": specs.DatasetSpec,
    "executor": specs.ExecutorSpec,
    "reporter": specs.ReporterSpec,
}


def spec_problems(spec: specs.ComponentSpec) -> list[str]:
    """Return what is wrong with a spec, one sentence a problem; empty if it is sound.

    Only data is looked at: nothing is imported, and requirements are not looked up.
    """
    return [f"{spec.kind} {spec.name!r}: {problem}" for problem in _problems(spec)]


def _problems(spec: specs.ComponentSpec) -> Iterator[str]:
    if not _is_a(spec.name, str) or not is_canonical(spec.name):
        yield (
            "the name must be lower-case letters and digits joined by single '-', "
            f"at most {NAME_LENGTH} characters"
        )
    if not _is_a(spec.summary, str) or not spec.summary or "\n" in spec.summary:
        yield "summary must be one line of text"
    if not _is_attribute(spec.target):
        yield f"target must look like 'package.module:Attr', found {spec.target!r}"
    if spec.params is not None and not _is_attribute(spec.params):
        yield f"params must look like 'package.module:Struct', found {spec.params!r}"
    if not _is_tuple_of(spec.requires, str):
        yield "requires must be a tuple of requirement strings"
    if not _is_a(spec.tags, frozenset):
        yield "tags must be a frozenset of words"
    if isinstance(spec, specs.ModelSpec):
        yield from _model_problems(spec)
    elif isinstance(spec, specs.AttackSpec):
        yield from _attack_problems(spec)
    elif isinstance(spec, specs.DefenseSpec):
        yield from _not_in("gradient", spec.gradient, literal_values(specs.Gradient))
        yield from _not_in("defense_kind", spec.defense_kind, literal_values(specs.DefenseKind))
    elif isinstance(spec, specs.MetricSpec):
        yield from _not_in("needs", spec.needs, ("frames", "video"))
        if not _is_tuple_of(spec.keys, str):
            yield "keys must be a tuple of words"
        if not _is_a(spec.concurrent, bool):
            yield f"concurrent must be true or false, found {spec.concurrent!r}"


def _model_problems(spec: specs.ModelSpec) -> Iterator[str]:
    if not _is_a(spec.clip, specs.ClipSpec):
        yield "clip must be a ClipSpec"
    if not _is_a(spec.num_classes, int) or spec.num_classes < 0:
        yield f"num_classes must be an integer and not below 0, found {spec.num_classes!r}"
    if not _is_tuple_of(spec.weights, specs.WeightSpec):
        yield "weights must be a tuple of WeightSpec"
        return
    variants = [weights.variant for weights in spec.weights]
    for variant in sorted({v for v in variants if variants.count(v) > 1}):
        yield f"two sets of weights have the variant {variant!r}"
    for variant in variants:
        if variant and not _VARIANT.fullmatch(variant):
            yield f"variant {variant!r} must be lower-case letters and digits joined by '-' or '.'"


def _attack_problems(spec: specs.AttackSpec) -> Iterator[str]:
    yield from _not_in("access", spec.access, literal_values(specs.Access))
    yield from _not_in("stage", spec.stage, ("frames", "source", "plan"))
    if not _is_a(spec.norms, frozenset) or not spec.norms:
        yield "norms must be a frozenset with at least one norm"
        return
    for norm in sorted(spec.norms, key=str):
        yield from _not_in("norms", norm, literal_values(specs.Norm))
    if spec.corruption is not None:
        yield from _corruption_problems(spec, spec.corruption)


def _corruption_problems(spec: specs.AttackSpec, found: specs.Corruption) -> Iterator[str]:
    if not _is_a(found, specs.Corruption):
        yield "corruption must be a Corruption"
        return
    if spec.access != "none":
        yield f"a corruption asks nobody: access must be 'none', found {spec.access!r}"
    if not _is_a(found.group, str) or not found.group:
        yield "corruption.group must be a word"
    if not _is_a(found.severities, int) or found.severities < 1:
        yield f"corruption.severities must be a positive integer, found {found.severities!r}"
    if not _is_tuple_of(found.member_of, specs.SuiteMember):
        yield "corruption.member_of must be a tuple of SuiteMember"


def _is_attribute(value: object) -> bool:
    return isinstance(value, str) and _ATTRIBUTE.fullmatch(value) is not None


def _is_a(value: object, kind: type) -> bool:
    """Return whether a field has its type; plugins are not type-checked when they are loaded."""
    return isinstance(value, kind)


def _is_tuple_of(value: object, kind: type) -> bool:
    return isinstance(value, tuple) and all(isinstance(part, kind) for part in value)


def _not_in(field: str, value: Any, allowed: tuple[str, ...]) -> Iterator[str]:
    if value not in allowed:
        yield f"{field} has {value!r}; allowed: {', '.join(allowed)}"
