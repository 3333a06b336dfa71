from __future__ import annotations

import unittest
from dataclasses import replace

import pytest
from vcr_core.errors import UsageError
from vcr_core.testing.catalog import CHECKS
from vcr_core.testing.contract import as_param, cases, parametrize_contract
from vcr_core.testing.toys import specs

_PARAMS = "vcr_core.testing.toys.broken.params"
_KEY = "attack/succeeds-on-linear:toy-descent"


def test_cases_are_chosen_by_the_specs_claims():
    ids = {c.check.id for c in cases(specs.TOY_LINEAR)}
    assert "model/gradient-finite" in ids
    flat = replace(specs.TOY_LINEAR, differentiable=False)
    assert "model/gradient-finite" not in {c.check.id for c in cases(flat)}
    assert "attack/budget-kept" not in {c.check.id for c in cases(specs.TOY_GRAIN)}


def test_ids_are_stable_and_readable():
    assert _KEY in {c.id for c in cases([specs.TOY_DESCENT])}
    assert len({c.id for c in CHECKS}) == len(CHECKS)


def test_weights_inside_a_package_are_cases_of_their_own():
    from vcr_core.specs import WeightSpec

    several = replace(
        specs.TOY_LINEAR,
        weights=(
            WeightSpec(variant="a", url="https://example.org/a"),
            WeightSpec(variant="b", url="https://example.org/b"),
            WeightSpec(variant="c", url="package:acme/c.safetensors"),
        ),
    )
    refs = {c.subject.ref for c in cases([several]) if c.check.kind == "model"}
    assert refs == {"toy-linear.a", "toy-linear.c"}


def test_an_expected_failure_becomes_a_strict_xfail_with_its_reason():
    found = cases([specs.TOY_DESCENT], expected_failures={_KEY: "too weak by design"})
    (case,) = [c for c in found if c.id == _KEY]
    (mark,) = as_param(case).marks
    assert (mark.name, mark.kwargs) == ("xfail", {"reason": "too weak by design", "strict": True})
    assert not as_param(next(c for c in found if c.id != _KEY)).marks


def test_an_expected_failure_needs_a_reason():
    with pytest.raises(UsageError, match="needs a reason"):
        cases([specs.TOY_DESCENT], expected_failures={_KEY: " "})


def test_an_unknown_key_is_refused_with_a_near_match():
    with pytest.raises(UsageError, match="did you mean 'attack/succeeds-on-linear:toy-descent'"):
        cases([specs.TOY_DESCENT], expected_failures={"attack/succeed-on-linear:toy-descent": "x"})
    with pytest.raises(UsageError, match=r"params\['attack/nothing'\]"):
        cases([specs.TOY_DESCENT], params={"attack/nothing": {}})


def test_an_unknown_distribution_is_refused():
    with pytest.raises(UsageError, match="no plugin of a distribution 'vcr-nowhere'"):
        parametrize_contract("vcr-nowhere")


def test_a_missing_requirement_skips_and_names_it():
    needy = replace(
        specs.TOY_DIFFERENCE, requires=("not-a-real-library>=3",), extra="vcr-acme[metrics]"
    )
    case = next(c for c in cases([needy]) if c.check.id == "metric/keys-declared")
    with pytest.raises(unittest.SkipTest, match=r"vcr-acme\[metrics\].*not-a-real-library>=3"):
        case()


def test_missing_parameters_skip_and_are_named():
    needy = replace(specs.TOY_SHAPES, params=f"{_PARAMS}:NeedsRoot")
    case = next(c for c in cases([needy]) if c.check.kind == "dataset")
    with pytest.raises(unittest.SkipTest, match="needs parameters root"):
        case()


def test_parameters_reach_the_component():
    given = {"attack/toy-descent": lambda: {"steps": 3}}
    case = next(c for c in cases([specs.TOY_DESCENT], params=given) if c.check.kind == "attack")
    assert case.subject.given() == {"steps": 3}
