"""``[source]``: the model that an attack is computed on, where it is not the evaluated one."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from typing import Any

import pytest
from vcr_core import plugins
from vcr_core.config.identity import attack_identity, identity_of, run_id
from vcr_core.config.json_schema import run_file_schema
from vcr_core.config.resolve import Resolved, resolve_run
from vcr_core.config.sweep import Combination, expand
from vcr_core.errors import ConfigError, IncompatibleComponents
from vcr_core.file_names import file_name
from vcr_core.sweep_order import sweep_steps

BASE: dict[str, Any] = {
    "dataset": {"name": "motion", "limit": 3},
    "model": {"name": "net.large"},
    "source": {"name": "net.small"},
    "attack": {"name": "ifgsm", "steps": 5},
    "protocol": {"stop": "budget"},
}
GRID: dict[str, Any] = {
    "dataset": {"limit": 2},
    "protocol": {"stop": "budget"},
    "matrix": {"model": ["net.small", "net.large"], "attack": ["none", "ifgsm"]},
}


def without(*names: str, **more: Any) -> dict[str, Any]:
    return {**{key: value for key, value in BASE.items() if key not in names}, **more}


def resolved(document: dict[str, Any], *overrides: str) -> Resolved:
    return resolve_run(document, overrides=overrides)


def run_name(found: Resolved) -> str:
    return run_id(found.identity, [("v", 0)])[0]


class TestIdentity:
    def test_absent_it_is_not_there_at_all(self) -> None:
        found = resolved(without("source"))
        assert found.experiment.source is None
        assert "source" not in found.identity
        assert "source" not in tomllib.loads(found.toml)
        assert run_name(found).startswith("motion-net.large-ifgsm-nodefense-")

    def test_present_it_counts_with_its_weights_and_is_in_the_name(self) -> None:
        found = resolved(BASE)
        assert found.identity["source"] == {
            "ref": "vcr-fake/net.small", "version": "1.2.3", "params": {}, "weights": "ab" * 32,
        }  # fmt: skip
        name = run_name(found)
        assert name.startswith("motion-net.large-ifgsm@net.small-nodefense-")
        assert name != run_name(resolved(without("source")))
        # A page of a site may not be called like the run; it has a name of its own.
        assert "@" not in file_name(name)

    def test_the_model_itself_is_no_source(self) -> None:
        same = resolved(without("source", source="net.large"))
        assert same.experiment.source is None
        assert same.identity == resolved(without("source")).identity

    def test_the_attack_is_that_of_the_source_alone(self) -> None:
        own = resolved(without("source", "model", model="net.small")).experiment
        shown = resolved(BASE).experiment
        behind = resolved(
            {**BASE, "defense": "jpeg"}, "protocol.attacker_knows_defense=false"
        ).experiment
        assert attack_identity(own) is not None
        assert attack_identity(shown) == attack_identity(own) == attack_identity(behind)
        assert identity_of(shown.attack_run) == identity_of(own)
        assert own.attack_run is own

    def test_the_resolved_file_gives_the_same_run(self) -> None:
        found = resolved(BASE)
        again = resolved(tomllib.loads(found.toml))
        assert again.identity == found.identity
        assert found.provenance["source.name"] == "arguments"

    @pytest.mark.parametrize("text", ["source=net.small", "source.name=net.small"])
    def test_it_can_be_set_from_outside(self, text: str) -> None:
        assert resolved(without("source"), text).identity == resolved(BASE).identity
        assert resolved(BASE, "source=none").experiment.source is None

    def test_the_schema_has_it(self) -> None:
        known = run_file_schema()["$defs"]["RunFile"]["properties"]
        assert "attack is computed on" in known["source"]["description"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("document", "text"),
        [
            (without("attack"), "source.name: found 'net.small', and there is no attack"),
            (
                without("attack", attack="codec"),
                "codec asks no model anything: it does the same whatever the source",
            ),
            (
                {**BASE, "defense": "jpeg"},
                "set protocol.attacker_knows_defense = false",
            ),
            ({**BASE, "protocol": {"space": "input"}}, "allowed with [source]: 'source'"),
            ({**BASE, "protocol": {"tie_frames": False}}, "allowed with [source]: true"),
            (
                without("source", source="kinetics-net"),
                "source.name: kinetics-net.small predicts the classes of 'kinetics400'",
            ),
            (without("source", source="opaque"), "ifgsm needs gradients, and model opaque.small"),
            (
                without("source", source="kinetics-net", dataset="folder")
                | {"threat": {"targeted": True}},
                "classes 'kinetics400' of kinetics-net.small is none of net.large",
            ),
        ],
        ids=["no-attack", "asks-nothing", "adaptive", "input", "untied", "labels", "gradients",
             "targets"],
    )  # fmt: skip
    def test_what_makes_no_sense_is_refused(self, document: dict[str, Any], text: str) -> None:
        with pytest.raises(IncompatibleComponents) as caught:
            resolved(document)
        assert text in str(caught.value)

    def test_the_evaluated_model_needs_no_gradient(self) -> None:
        assert resolved(without("model", model="opaque")).experiment.source is not None

    def test_a_source_that_does_not_exist_is_named_with_its_key(self) -> None:
        with pytest.raises(ConfigError) as caught:
            resolved(without("source", source="nett"))
        assert any(text.startswith("arguments: source.name") for text in caught.value.problems)

    def test_an_attack_that_stops_early_is_worth_a_note(self) -> None:
        early = resolved(BASE, "protocol.stop=first_success")
        assert any("as soon as net.small is wrong" in note for note in early.notes)
        assert resolved(BASE).notes == ()


def told(found: list[Combination]) -> list[tuple[str, str, str]]:
    return [(c.values["model"], c.values["attack"], c.values.get("source", "")) for c in found]


class TestSweeps:
    def test_every_attack_is_shown_to_every_other_model(self) -> None:
        grid = {**GRID, "matrix": {**GRID["matrix"], "model": ["net.small", "net.large", "opaque"]}}
        found = expand(grid, transfer=True)
        assert told(found)[:6] == [
            (model, attack, "")
            for model in ("net.small", "net.large", "opaque")
            for attack in ("none", "ifgsm")
        ]
        # There is no gradient of the third model to attack, but the others can be shown to it.
        assert told(found)[6:] == [
            ("net.large", "ifgsm", "net.small"),
            ("opaque", "ifgsm", "net.small"),
            ("net.small", "ifgsm", "net.large"),
            ("opaque", "ifgsm", "net.large"),
        ]
        assert [c.problem is None for c in found[6:]] == [True] * 4
        assert expand(grid) == found[:6]

    def test_the_source_comes_first_and_the_others_take_over_its_attack(self) -> None:
        found = expand(GRID, transfer=True)
        steps = sweep_steps(found)
        assert [(told(found)[step.index], step.attack_of, step.shares) for step in steps] == [
            (("net.large", "none", ""), None, True),
            (("net.large", "ifgsm", ""), None, True),
            (("net.small", "ifgsm", "net.large"), 3, True),
            (("net.small", "none", ""), None, True),
            (("net.small", "ifgsm", ""), None, True),
            (("net.large", "ifgsm", "net.small"), 1, True),
        ]

    def test_parameters_of_a_model_go_with_it(self, use_registry: Any) -> None:
        known = plugins.registry()
        net, _ = known.find("model", "net")
        wide = replace(net.spec, name="wide", params="vcr_fake.params:BlurParams")
        entry = replace(net, spec=wide)
        use_registry(replace(known, _entries=(*known._entries, entry)))
        models = ["net.small", {"name": "wide.small", "sigma": 3.0}]
        grid = {**GRID, "matrix": {"model": models, "attack": ["ifgsm"]}}
        *_, wide_alone, _, net_shown = (c.resolved for c in expand(grid, transfer=True))
        assert wide_alone is not None
        assert net_shown is not None
        assert net_shown.experiment.source == wide_alone.experiment.model
        assert net_shown.experiment.source.params["sigma"] == 3.0

    def test_an_axis_of_sources_has_no_diagonal(self) -> None:
        models = ["net.small", "net.large"]
        grid = {"attack": "ifgsm", "matrix": {"model": models, "source": models}}
        found = expand(grid)
        sources = [c.resolved and c.resolved.experiment.source for c in found]
        assert [s and s.ref for s in sources] == [None, "net.large", "net.small", None]
        # Nothing is shown twice, and points that name a source are no sources themselves.
        more = expand(grid, transfer=True)
        assert len(more) == 4
        assert any("the same run" in note for c in more for note in c.notes)

    def test_where_nothing_is_attacked_the_source_does_not_count(self) -> None:
        models = ["net.small", "net.large"]
        matrix = {"model": ["net.small"], "attack": ["none", "ifgsm"], "source": models}
        found = expand({"matrix": matrix})
        assert [c.problem for c in found] == [None] * 3
        assert found[0].notes == ("the same run as with source = net.large",)
        fixed = expand({"source": "net.large", "matrix": {**matrix, "source": ["net.large"]}})
        assert [c.problem for c in fixed] == [None] * 2

    def test_what_cannot_be_is_listed_with_the_reason(self) -> None:
        grid = {**GRID, "defense": "jpeg", "matrix": {**GRID["matrix"], "attack": ["ifgsm"]}}
        found = expand(grid, transfer=True)
        assert len(found) == 4
        for point in found[2:]:
            assert point.resolved is None
            assert "attacker_knows_defense = false" in (point.problem or "")
        assert all(c.problem is None for c in expand(
            grid, ["protocol.attacker_knows_defense=false"], transfer=True
        ))  # fmt: skip

    def test_attacks_that_ask_nothing_are_left_alone(self) -> None:
        matrix = {**GRID["matrix"], "attack": ["codec"]}
        assert len(expand({**GRID, "matrix": matrix}, transfer=True)) == 2

    def test_one_model_is_not_enough(self) -> None:
        with pytest.raises(ConfigError, match="the sweep has one model"):
            expand(GRID, shortcuts={"model": "net.small"}, transfer=True)
