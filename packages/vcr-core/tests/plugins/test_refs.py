"""References and spec rules."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vcr_core.errors import UsageError
from vcr_core.refs import NAME_PATTERN, Reference, is_canonical, normal_name, parse, parse_kind
from vcr_core.spec_rules import SPEC_TYPES, spec_problems
from vcr_core.specs import KINDS, AttackSpec, ClipSpec, MetricSpec, ModelSpec, WeightSpec, to_plain

names = st.from_regex(NAME_PATTERN, fullmatch=True).filter(lambda text: len(text) <= 40)


@given(name=names, variant=st.one_of(st.just(""), names), dist=st.one_of(st.just(""), names))
def test_canonical_text_parses_to_itself(name, variant, dist):
    if dist in {*KINDS, *(f"{kind}s" for kind in KINDS)}:
        dist = ""
    reference = Reference(name=name, variant=variant, distribution=dist)
    assert parse(str(reference)) == reference
    assert parse(str(reference).upper().replace("-", "_")) == reference


@pytest.mark.parametrize("text", ["", " ", "/x", "a/", "a//b", "a/b/c", "x.", ".x", "a/b/c/d"])
def test_what_is_no_reference(text):
    with pytest.raises(UsageError):
        parse(text)


def test_kind_words():
    assert parse_kind("Attacks") == parse_kind("attack") == "attack"
    with pytest.raises(UsageError, match="did you mean 'attack'"):
        parse_kind("atacks")


@pytest.mark.parametrize("name", ["", "-a", "a-", "a--b", "A", "a_b", "a.b", "ä", "a" * 41])
def test_names_that_are_not_canonical(name):
    assert not is_canonical(name)


def test_normal_name_maps_underscores_and_blanks():
    assert normal_name("Temporal Median_X") == "temporal-median-x"


MODEL = ModelSpec(
    name="m",
    summary="A model",
    target="a.b:C",
    label_space="l",
    num_classes=3,
    clip=ClipSpec(frames=4),
    weights=(WeightSpec(variant="v1"), WeightSpec(variant="v2")),
)
METRIC = MetricSpec(name="mse", summary="An error", target="a.b:C", higher_is_better=False)
ATTACK = AttackSpec(
    name="a", summary="An attack", target="a:B", access="white-box", norms=frozenset({"linf"})
)


@pytest.mark.parametrize(
    ("spec", "change", "problem"),
    [
        (MODEL, {"num_classes": -1}, "not below 0"),
        (MODEL, {"clip": None}, "ClipSpec"),
        (MODEL, {"weights": (WeightSpec(variant="v"), WeightSpec(variant="v"))}, "two sets"),
        (MODEL, {"weights": (WeightSpec(variant="V_1"),)}, "variant 'V_1'"),
        (MODEL, {"summary": "two\nlines"}, "one line"),
        (MODEL, {"requires": ["torch"]}, "requires must be a tuple"),
        (MODEL, {"tags": {"x"}}, "tags must be a frozenset"),
        (MODEL, {"params": "nowhere"}, "params must look like"),
        (ATTACK, {"access": "whitebox"}, "access has 'whitebox'"),
        (ATTACK, {"norms": frozenset({"inf"})}, "norms has 'inf'"),
        (ATTACK, {"norms": frozenset()}, "at least one norm"),
        (ATTACK, {"stage": "video"}, "stage has 'video'"),
        (METRIC, {"keys": "mse"}, "keys must be a tuple"),
        (METRIC, {"concurrent": "yes"}, "concurrent must be true or false, found 'yes'"),
    ],
)
def test_spec_problems_are_named(spec, change, problem):
    assert spec_problems(spec) == []
    found = spec_problems(replace(spec, **change))
    assert len(found) == 1
    assert problem in found[0]


def test_every_kind_has_a_spec_type():
    assert {kind: spec.kind for kind, spec in SPEC_TYPES.items()} == {k: k for k in KINDS}


def test_specs_print_as_plain_data():
    plain = to_plain(MODEL)
    assert plain["kind"] == "model"
    assert plain["clip"]["frames"] == 4
    assert plain["weights"][1]["variant"] == "v2"
