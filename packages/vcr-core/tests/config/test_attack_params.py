"""``defense.attack_params``: other parameters while an adaptive attack looks at the defense."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from vcr_core.config.command_text import command_text
from vcr_core.config.resolve import resolve_run
from vcr_core.errors import ConfigError

DOCUMENT: dict[str, Any] = {
    "model": "net",
    "attack": "ifgsm",
    "defense": {"name": "gaussian-blur", "sigma": 2.0, "attack_params": {"sigma": 1.0}},
}


def test_the_changed_parameters_lie_over_the_others() -> None:
    [blur] = resolve_run(DOCUMENT).experiment.defenses
    assert blur.params["sigma"] == 2.0
    assert blur.attack_params == {**blur.params, "sigma": 1.0}


def test_equal_parameters_are_no_change() -> None:
    same = {**DOCUMENT, "defense": {"name": "jpeg", "attack_params": {"quality": 75}}}
    plain = resolve_run({**DOCUMENT, "defense": "jpeg"})
    assert resolve_run(same).experiment.defenses == plain.experiment.defenses
    assert resolve_run(same).identity == plain.identity


def test_they_count_where_an_attack_sees_the_defense_only() -> None:
    bare = {**DOCUMENT, "defense": {"name": "gaussian-blur", "sigma": 2.0}}
    assert resolve_run(DOCUMENT).identity != resolve_run(bare).identity
    unseen = ["protocol.attacker_knows_defense=false"]
    first, second = (resolve_run(d, overrides=unseen) for d in (DOCUMENT, bare))
    assert first.identity == second.identity


def test_the_resolved_file_and_the_command_give_them_back() -> None:
    resolved = resolve_run(DOCUMENT)
    again = resolve_run(tomllib.loads(resolved.toml))
    assert again.identity == resolved.identity
    assert "defense.attack_params.sigma=1" in command_text("run", resolved.experiment)


def test_an_override_reaches_them() -> None:
    bare = {**DOCUMENT, "defense": "jpeg+gaussian-blur"}
    changed = resolve_run(bare, overrides=["defense.gaussian-blur.attack_params.sigma=0.5"])
    assert changed.experiment.defenses[0].attack_params == {}
    assert changed.experiment.defenses[1].attack_params["sigma"] == 0.5


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"sgima": 1.0}, "defense.attack_params.sgima"),
        ({"sigma": -1.0}, "defense.attack_params.sigma"),
        (3, "defense.attack_params: found 3"),
    ],
)
def test_mistakes_are_named_with_their_place(value: Any, told: str) -> None:
    wrong = {**DOCUMENT, "defense": {"name": "gaussian-blur", "attack_params": value}}
    with pytest.raises(ConfigError) as caught:
        resolve_run(wrong)
    assert told in str(caught.value)
