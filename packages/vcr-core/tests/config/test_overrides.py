from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vcr_core.config.fraction_text import levels_text, parse_number, snap
from vcr_core.config.resolve import resolve_run
from vcr_core.config.toml_text import parse_value, to_toml
from vcr_core.errors import ConfigError

CHAIN = {"model": "net", "defense": ["jpeg", "gaussian-blur"]}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("50", 50),
        ("0.5", 0.5),
        ("true", True),
        ('["mse", "psnr"]', ["mse", "psnr"]),
        ('"4/255"', "4/255"),
        ("4/255", "4/255"),
        ("a=b", "a=b"),
        ("1,2", "1,2"),
        ("1,", "1,"),
        ("50%", "50%"),
        ("5 # five", "5 # five"),
        ("#1", "#1"),
        ("2024-01-02", "2024-01-02"),
        ("10:30:00", "10:30:00"),
        ("1\nb = 2", "1\nb = 2"),
        ("", ""),
        ("C:\\videos", "C:\\videos"),
        ('"#1, really"', "#1, really"),
    ],
)
def test_a_value_is_toml_or_text(text: str, value: Any) -> None:
    assert parse_value(text) == value


def test_only_the_first_equals_sign_splits() -> None:
    resolved = resolve_run(
        {"model": "net", "dataset": "folder"}, overrides=["dataset.root=/data/a=b,c#d%20"]
    )
    assert resolved.experiment.dataset.params["root"] == "/data/a=b,c#d%20"


def test_one_defense_is_reached_without_a_number() -> None:
    resolved = resolve_run(
        {"model": "net", "defense": "gaussian-blur"}, overrides=["defense.sigma=2"]
    )
    assert resolved.experiment.defenses[0].params["sigma"] == 2.0
    assert resolved.provenance["defense.sigma"] == "--set"


@pytest.mark.parametrize(
    "key", ["defense.1.sigma", "defense.gaussian-blur.sigma", "defense.Gaussian_Blur.sigma"]
)
def test_a_chain_is_reached_by_number_or_name(key: str) -> None:
    resolved = resolve_run(CHAIN, overrides=[f"{key}=2"])
    assert resolved.experiment.defenses[1].params["sigma"] == 2.0
    assert resolved.provenance["defense.1.sigma"] == "--set"
    assert resolved.provenance["defense.0.name"] == "arguments"


def test_a_chain_from_an_option_can_be_refined() -> None:
    resolved = resolve_run(
        {"model": "net"},
        shortcuts={"defense": "jpeg+gaussian-blur"},
        overrides=["defense.jpeg.quality=30"],
    )
    assert [d.ref for d in resolved.experiment.defenses] == ["jpeg", "gaussian-blur"]
    assert resolved.experiment.defenses[0].params == {"quality": 30}


def test_a_defense_may_be_named_by_an_override() -> None:
    for override in ("defense.name=jpeg", "defense=jpeg"):
        for document in ({"model": "net"}, {"model": "net", "defense": "rotate"}):
            [defense] = resolve_run(document, overrides=[override]).experiment.defenses
            assert defense.ref == "jpeg"


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("defense.sigma=2", "write one of: defense.0.sigma, defense.1.sigma"),
        ("defense.7.sigma=2", "allowed: 0 to 1"),
        ("defense.name=rotate", "the chain has 2 defenses"),
    ],
)
def test_an_ambiguous_place_in_a_chain_is_refused(override: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_run(CHAIN, overrides=[override])
    assert says in str(caught.value)


def test_the_same_defense_twice_needs_a_number() -> None:
    document = {"model": "net", "defense": "jpeg+jpeg"}
    with pytest.raises(ConfigError, match=r"write defense\.0 or defense\.1"):
        resolve_run(document, overrides=["defense.jpeg.quality=9"])
    resolved = resolve_run(document, overrides=["defense.1.quality=9"])
    assert [d.params["quality"] for d in resolved.experiment.defenses] == [75, 9]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8/255", 8 / 255),
        ("0.5/255", 0.5 / 255),
        (" 4 / 255 ", 4 / 255),
        ("0.03", 0.03),
        (0.03, 0.03),
        (0, 0.0),
    ],
)
def test_eps_is_a_fraction_or_a_number(text: Any, value: float) -> None:
    resolved = resolve_run({"model": "net", "attack": "ifgsm", "threat": {"eps": text}})
    assert resolved.experiment.threat.eps == value


def test_fractions_work_for_every_number_of_a_component() -> None:
    document = {
        "model": "net",
        "attack": {"name": "ifgsm", "step_size": "0.5/255", "momentum": "1/4"},
    }
    attack = resolve_run(document).experiment.attack
    assert attack is not None
    assert attack.params["step_size"] == 0.5 / 255
    assert attack.params["momentum"] == 0.25


def test_a_word_beside_a_number_stays_a_word() -> None:
    attack = resolve_run({"model": "net", "attack": {"name": "ifgsm", "step_size": "auto"}})
    assert attack.experiment.attack is not None
    assert attack.experiment.attack.params["step_size"] == "auto"


def test_eps_typed_with_decimals_is_the_same_experiment() -> None:
    document = {"model": "net", "attack": "ifgsm"}
    first = resolve_run(document, overrides=["threat.eps=4/255"])
    second = resolve_run(document, overrides=["threat.eps=0.01568627450980"])
    assert first.identity == second.identity
    assert 'eps = "4/255"' in second.toml


@given(st.integers(min_value=0, max_value=510))
def test_every_half_level_is_written_as_a_fraction_and_read_back(halves: int) -> None:
    value = halves / 2 / 255
    text = levels_text(value)
    assert isinstance(text, str)
    assert parse_number(text) == value
    assert snap(value + 5e-13) == value


@given(
    st.dictionaries(
        st.text(min_size=1),
        st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False, allow_infinity=False) | st.text()
        | st.lists(st.integers(0, 9)) | st.dictionaries(st.text(), st.text(), max_size=3),
    )
)  # fmt: skip
def test_written_toml_is_read_back(document: dict[str, Any]) -> None:
    import tomllib

    expected = {key: value for key, value in document.items() if value is not None}
    assert tomllib.loads(to_toml(document)) == expected
