"""Availability from metadata, and building components from specs."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from vcr_core.availability import availability, installed_version
from vcr_core.components import build, chosen_weights, load_attr, params_type
from vcr_core.config.experiment import Chosen
from vcr_core.errors import ComponentUnavailable, ConfigError
from vcr_core.specs import ClipSpec, MetricSpec, ModelSpec, WeightSpec

SOURCE = """
from msgspec import Struct, Meta
from typing import Annotated

class Params(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    steps: Annotated[int, Meta(ge=1)] = 3

class Metric:
    def __init__(self, *arguments):
        self.arguments = arguments

Model = Metric
not_a_struct = dict
"""

METRIC = MetricSpec(
    name="thing",
    summary="A thing",
    target="thing_mod:Metric",
    params="thing_mod:Params",
    higher_is_better=True,
)
MODEL = ModelSpec(
    name="net",
    summary="A net",
    target="thing_mod:Model",
    label_space="l",
    num_classes=2,
    clip=ClipSpec(frames=4),
    weights=(WeightSpec(variant="small"), WeightSpec(variant="large")),
)


def chosen(spec, **options):
    return Chosen(spec=spec, distribution="vcr-thing", version="1.2", **options)


@pytest.fixture
def module(site):
    (site.folder / "thing_mod.py").write_text(SOURCE)


@pytest.mark.parametrize(
    ("requirement", "text"),
    [
        ("pluggy>=1.6", ""),
        ("no-such-thing>=2,<3", "no-such-thing<3,>=2 not installed"),
        ("pluggy>=99", "pluggy>=99 needed"),
        ("no-such-thing; python_version < '3'", ""),
        ("not a requirement", "not a valid requirement"),
    ],
)
def test_availability_from_metadata(site, requirement, text):
    found = availability(replace(METRIC, requires=(requirement,), extra="vcr-thing[all]"))
    assert found.ok is (text == "")
    assert text in found.text
    assert found.text == "ok" or found.text.startswith("needs vcr-thing[all] (")


def test_availability_without_an_extra_names_the_requirements(site):
    found = availability(replace(METRIC, requires=("no-such-thing",)))
    assert found.text == "needs no-such-thing (no-such-thing not installed)"


def test_installed_version():
    assert installed_version("pluggy")
    assert installed_version("no-such-thing") is None


def test_build_gives_params_and_no_more(module):
    built = build(chosen(METRIC, params={"steps": 5}))
    (params,) = built.arguments
    assert params.steps == 5
    assert build(chosen(replace(METRIC, params=None))).arguments == ()


def test_build_gives_models_their_weights(module):
    assert build(chosen(MODEL, variant="large")).arguments == (MODEL.weights[1],)
    assert build(chosen(MODEL)).arguments == (MODEL.weights[0],)
    bare = replace(MODEL, weights=(), params="thing_mod:Params")
    params, weights = build(chosen(bare)).arguments
    assert (params.steps, weights) == (3, None)


def test_a_preset_variant_leaves_the_default_weights():
    assert chosen_weights(MODEL, "some-preset") is MODEL.weights[0]
    assert chosen_weights(replace(MODEL, weights=()), "small") is None


def test_bad_params_are_configuration_errors(module):
    with pytest.raises(ConfigError, match=r"metric thing: .*steps"):
        build(chosen(METRIC, params={"steps": 0}))
    with pytest.raises(ConfigError, match="takes no parameters"):
        build(chosen(replace(METRIC, params=None), params={"steps": 1}))


def test_missing_requirement_stops_before_the_import(site):
    spec = replace(METRIC, requires=("no-such-thing>=2",), extra="vcr-thing[all]")
    with pytest.raises(ComponentUnavailable, match=r"needs vcr-thing\[all\]") as caught:
        build(chosen(spec))
    assert "metric 'thing' of vcr-thing 1.2" in str(caught.value)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import no_such_library\n", "ModuleNotFoundError"),
        ("assert False, 'mmcv>=2.2 is not supported'\n", "mmcv>=2.2 is not supported"),
        ("raise SystemExit(3)\n", "sys.exit(3)"),
        ("", "AttributeError"),
    ],
)
def test_failed_import_names_component_distribution_and_cause(site, source, reason):
    (site.folder / "lost_mod.py").write_text(source)
    spec = replace(METRIC, extra="vcr-thing[all]")
    with pytest.raises(ComponentUnavailable) as caught:
        load_attr("lost_mod:Gone", chosen(spec))
    text = str(caught.value)
    assert "metric 'thing' of vcr-thing 1.2 is not available" in text
    assert reason in text
    assert "pip install 'vcr-thing[all]'" in text
    assert caught.value.__cause__ is not None


def test_owner_of_a_bare_spec_is_looked_up(site, load):
    site.add(
        "vcr-lost",
        """
        from vcr_core import MetricSpec, hookimpl

        @hookimpl
        def vcr_register_metrics():
            return [MetricSpec(name="lost", summary="x", target="gone_mod:X",
                               params="gone_mod:P", higher_is_better=True)]
        """,
    )
    spec = next(e.spec for e in load().entries("metric") if e.name == "lost")
    with pytest.raises(ComponentUnavailable, match=r"metric 'lost' of vcr-lost 0\.3\.1"):
        params_type(spec)


def test_params_must_be_a_struct(module):
    assert issubclass(params_type(METRIC), msgspec.Struct)
    assert params_type(replace(METRIC, params=None)) is None
    with pytest.raises(ComponentUnavailable, match=r"no msgspec\.Struct"):
        params_type(replace(METRIC, params="thing_mod:not_a_struct"))


def test_what_a_component_prints_while_imported_goes_to_stderr(site, capsys):
    (site.folder / "loud_mod.py").write_text("print('loud')\nX = 1\n")
    assert load_attr("loud_mod:X", chosen(METRIC)) == 1
    assert capsys.readouterr().out == ""
