from __future__ import annotations

from typing import Any

import pytest
from vcr_core.config.sweep import Combination, expand, is_sweep
from vcr_core.errors import ConfigError

GRID: dict[str, Any] = {
    "dataset": {"limit": 2},
    "matrix": {
        "model": ["net", "opaque"],
        "attack": ["none", "ifgsm", {"name": "pgd", "restarts": 2}],
        "defense": ["none", "jpeg", "jpeg+gaussian-blur"],
        "threat.eps": ["1/255", "2/255"],
    },
}


def values(combinations: list[Combination]) -> list[tuple[str, ...]]:
    return [tuple(combination.values.values()) for combination in combinations]


def test_every_combination_in_order_with_what_is_impossible() -> None:
    found = expand(GRID)
    # 2 models x (3 clean + 2 attacks x 3 defenses x 2 radii)
    assert len(found) == 2 * (3 + 12)
    impossible = [point for point in found if point.problem]
    assert len(impossible) == 12
    for point in impossible:
        assert point.values["model"] == "opaque"
        assert "needs gradients" in (point.problem or "")
        assert point.resolved is None
    assert all(point.resolved for point in found if not point.problem)
    assert values(found)[0] == ("net", "none", "none", "1/255")
    assert values(found)[3] == ("net", "ifgsm", "none", "1/255")
    pgd = next(point for point in found if point.values["attack"] == "pgd(restarts=2)")
    assert pgd.resolved is not None
    assert pgd.resolved.experiment.attack is not None
    assert pgd.resolved.experiment.attack.params["restarts"] == 2
    assert pgd.resolved.provenance["attack.restarts"] == "arguments [matrix]"
    chain = next(point for point in found if point.values["defense"] == "jpeg+gaussian-blur")
    assert chain.resolved is not None
    assert len(chain.resolved.experiment.defenses) == 2


def test_points_that_are_one_run_are_merged_with_a_note() -> None:
    clean = [point for point in expand(GRID) if point.values["attack"] == "none"]
    assert len(clean) == 6
    assert all("the same run as with threat.eps = 2/255" in point.notes for point in clean)


def test_nested_and_dotted_axes_are_the_same() -> None:
    dotted = {"model": "net", "attack": "ifgsm", "matrix": {"attack.steps": [1, 2], "seed": [1, 2]}}
    nested = {**dotted, "matrix": {"attack": {"steps": [1, 2]}, "seed": [1, 2]}}
    assert values(expand(dotted)) == values(expand(nested))
    assert values(expand(dotted)) == [("1", "1"), ("1", "2"), ("2", "1"), ("2", "2")]


def test_exclude_and_include() -> None:
    document = {
        **GRID,
        "exclude": [{"model": "Opaque"}, {"attack": "pgd"}, {"threat.eps": 2 / 255}],
        "include": [{"model": "net", "attack": "square", "threat": {"eps": "4/255"}}],
    }
    found = expand(document)
    assert all(point.problem is None for point in found)
    # Parameters make a value of its own: the rule for plain pgd leaves pgd(restarts=2) in.
    assert len(found) == 3 * 3 + 1
    assert found[-1].values == {"model": "net", "attack": "square", "threat.eps": "4/255"}
    document["exclude"] = [{"attack": {"name": "pgd", "restarts": 2}}, {"model": "opaque"}]
    assert not [point for point in expand(document) if "pgd" in point.values["attack"]]


def test_the_command_line_fixes_an_axis() -> None:
    found = expand(
        GRID, ["threat.eps=8/255", "attack.steps=4"], {"model": "net", "defense": "none"}
    )
    assert values(found) == [("none",), ("ifgsm",), ("pgd(restarts=2)",)]
    assert found[1].resolved is not None
    assert found[1].resolved.experiment.threat.eps == 8 / 255
    assert found[1].resolved.experiment.attack is not None
    assert found[1].resolved.experiment.attack.params["steps"] == 4
    assert all(point.problem is None for point in found)
    one = expand(
        GRID, [], {"model": "net", "attack": "ifgsm", "defense": "none", "threat.eps": "1/255"}
    )
    assert len(one) == 1
    assert one[0].resolved is not None


def test_a_wrong_value_is_the_problem_of_its_points() -> None:
    found = expand({"model": "net", "attack": "ifgsm", "matrix": {"attack.steps": [1, 0]}})
    assert [bool(point.problem) for point in found] == [False, True]
    assert "[matrix]: attack.steps: found 0" in (found[1].problem or "")


def test_a_missing_requirement_is_a_problem_of_its_points() -> None:
    document = {"matrix": {"model": ["net", "heavy"]}}
    assert "vcr-fake[heavy]" in (expand(document)[1].problem or "")
    assert expand(document, require_available=False)[1].problem is None


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({"model": "net"}, "matrix: missing; a sweep needs [matrix]"),
        (
            {"matrix": {"model": "net"}},
            "matrix.model: found 'net' (text); allowed: a list of values",
        ),
        ({"matrix": {"model": []}}, "matrix.model: found an empty list"),
        ({"matrix": {"modle": ["net"]}}, "matrix.modle: unknown key; did you mean 'model'?"),
        ({"matrix": 3}, "matrix: found 3 (integer); allowed: a table of lists"),
        ({"matrix": {"seed": [1]}, "exclude": [3]}, "exclude.0: found 3 (integer)"),
        ({"matrix": {"seed": [1]}, "exclude": [{"sed": 1}]}, "did you mean 'seed'?"),
    ],
)
def test_a_wrong_sweep_is_refused(document: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        expand(document)
    assert says in str(caught.value)


def test_a_wrong_override_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="key=value"):
        expand(GRID, ["nonsense"])


def test_sweep_presets(folder) -> None:  # type: ignore[no-untyped-def]
    assert len(expand("grid")) == 4
    assert is_sweep("grid")
    assert not is_sweep("quick")
    with pytest.raises(ConfigError, match="did you mean 'grid'"):
        expand("gird")
