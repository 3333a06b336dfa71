"""What is put together, and what never is: videos, suites, settings, unfinished runs."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("numpy")

from vcr_core.definitions import OWN_LABELS
from vcr_core.robustness.collect import collect
from vcr_core.robustness.places import place_of
from vcr_core.robustness.replicates import missing

ALL = [True] * 4


def suite(name: str, types: int, severities: int = 1) -> dict[str, Any]:
    return {"name": name, "version": "1", "types": types, "severities": severities}


def sections(*runs: Any) -> list[Any]:
    return list(collect(runs).sections)


def test_adversaries_and_clean_runs_have_no_place(make: Any) -> None:
    run = make.corruption("a", 1, ALL, ALL)
    run.manifest["components"][0]["access"] = "white-box"
    assert place_of(run.manifest) is None
    assert place_of({"components": [], "experiment": {}}) is None
    assert sections(run) == []


def test_other_videos_seeds_and_versions_are_apart(make: Any) -> None:
    one = make.corruption("a", 1, ALL, ALL)
    for change in ({"seed": 7}, {"evaluation_version": 2}, {"dataset": {"fingerprint": "beef"}}):
        other = make.corruption("a", 2, ALL, ALL, **change)
        assert [section.levels for section in sections(one, other)] == [(1,), (2,)]
    together = sections(one, make.corruption("a", 2, ALL, ALL))
    assert [section.levels for section in together] == [(1, 2)]


def test_what_tells_videos_apart_is_named(make: Any) -> None:
    one = make.corruption("a", 1, ALL, ALL)
    other = make.corruption("a", 1, [True] * 6, [True] * 6)
    assert [s.variant for s in sections(one, other)] == ["limit = 4", "limit = 6"]
    other = make.corruption("a", 1, ALL, ALL, seed=7)
    assert [s.variant for s in sections(one, other)] == ["seed = 42", "seed = 7"]
    other = make.corruption("a", 1, ALL, ALL, dataset={"fingerprint": "beef"})
    told = {s.variant for s in sections(one, other)}
    assert told == {"fingerprint = f00d", "fingerprint = beef"}
    assert [s.variant for s in sections(one)] == [""]


def test_means_are_within_a_suite(make: Any) -> None:
    two, three = suite("two", 2), suite("three", 3)
    runs = [
        make.corruption("a", 1, ALL, [True] * 4, suites=[two, three]),
        make.corruption("b", 1, ALL, [False] * 4, suites=[two]),
        make.corruption("c", 1, ALL, [True, True, False, False], suites=[three]),
        make.corruption("d", 1, ALL, [True] * 4, suites=[]),
    ]
    found = {section.suite: section for section in sections(*runs)}
    means = {
        name: section.systems["m"]["overall"]["mpc"]["value"] for name, section in found.items()
    }
    # two is whole; three is there for c, which nothing else covers; d is in no suite.
    assert means == {"two": 0.5, "three": 0.75, "": 1.0}
    assert found["two"].extent == ""
    assert found["three"].extent == "2 of 3 types"
    assert found[""].extent == "1 type, severity 1"


def test_a_suite_that_adds_no_type_is_left_out(make: Any) -> None:
    small, large = suite("small", 2), suite("large", 9)
    runs = [make.corruption(name, 1, ALL, ALL, suites=[small, large]) for name in ("a", "b")]
    assert [section.suite for section in sections(*runs)] == ["small"]


def test_a_quick_look_says_that_it_is_one(make: Any) -> None:
    runs = [make.corruption(name, 3, ALL, ALL, suites=[suite("two", 2, 5)]) for name in ("a", "b")]
    (section,) = sections(*runs)
    assert section.extent == "severity 3"


def test_parameters_tell_types_of_one_name_apart(make: Any) -> None:
    runs = [
        make.corruption("a", 1, ALL, ALL, params={"table": name, "same": 1}, suites=[])
        for name in ("x", "y")
    ]
    (section,) = sections(*runs)
    assert list(section.systems["m"]["types"]) == ["a (table = x)", "a (table = y)"]
    (alone,) = sections(runs[0])
    assert list(alone.systems["m"]["types"]) == ["a"]


def test_an_unfinished_run_is_a_missing_cell(make: Any) -> None:
    runs = [
        make.corruption("a", 1, ALL, ALL),
        make.corruption("a", 2, ALL, ALL, status="running"),
    ]
    (section,) = sections(*runs)
    assert section.systems["m"]["overall"]["mpc"]["reason"] == "incomplete: a has no severity 2"
    assert section.notes == ("m: a 2: run is running",)


def test_of_two_runs_of_a_cell_the_fuller_one_counts(make: Any) -> None:
    whole = make.corruption("a", 1, ALL, [True] * 4)
    torn = make.corruption("a", 1, ALL, [False] * 4, started="2027-01-01T00:00:00.000Z")
    torn.records[0]["status"] = "error"
    for order in ((whole, torn), (torn, whole)):
        (section,) = sections(*order)
        assert section.systems["m"]["overall"]["mpc"]["value"] == 1
        assert section.notes == ("m: a 1: two runs, one was left out",)


def test_defenses_are_systems_of_their_own(make: Any) -> None:
    pair = [(True,)] * 4
    runs = [
        make.corruption("a", 1, ALL, ALL),
        make.corruption("a", 1, pair, pair, defense="median"),
    ]
    (section,) = sections(*runs)
    assert dict(section.names) == {"m": ("m", ""), "m + median": ("m", "median")}


def test_an_old_manifest_is_placed_by_its_parameters(make: Any) -> None:
    run = make.corruption("a", 4, ALL, ALL)
    part = run.manifest["components"][0]
    del part["corruption"], part["tags"]
    place = place_of(run.manifest)
    assert place is not None
    assert (place.family, place.type, place.level) == ("corruption", "a", 4)
    assert (place.group, place.suites) == ("other", ())


def test_where_labels_are_clean_predictions_a_bare_model_has_no_clean_accuracy(make: Any) -> None:
    runs = []
    for labels in ("clean-prediction", "dataset"):
        for name, severity in (("a", 1), ("a", 2), ("b", 1), ("b", 2)):
            run = make.corruption(name, severity, ALL, [True] * 3 + [False])
            run.manifest["experiment"]["protocol"]["labels"] = labels
            runs.append(run)
    told = {section.dataset: section for section in sections(*runs)}
    assert set(told) == {"motion", "motion (labels: clean predictions)"}
    own, usual = told["motion (labels: clean predictions)"], told["motion"]
    assert usual.systems["m"]["overall"]["clean"]["value"] == 1
    assert own.systems["m"]["overall"]["clean"] == missing(OWN_LABELS, 4)
    assert own.systems["m"]["overall"]["mpc"]["value"] == 0.75
    assert any("accuracy is agreement" in note for note in own.notes)
    assert not usual.notes
