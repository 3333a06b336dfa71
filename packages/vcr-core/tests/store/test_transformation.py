"""Retention, recovery and consistency on record sets made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from vcr_core.transformation import describe_transformation, is_transformation


def record(label: int, before: int, after: int, *, p: tuple[float, float] = (0.5, 0.5)) -> Any:
    corner = lambda pred, prob: {"pred": pred, "p_label": prob}  # noqa: E731
    clean, attacked = corner(before, p[0]), corner(after, p[1])
    return {"status": "ok", "label": label, "clean": clean, "attacked": attacked}


FIVE = [
    record(0, 0, 0), record(1, 1, 1), record(2, 2, 2), record(3, 3, 0),  # four right, one lost
    record(4, 0, 4),  # one wrong, gained
]  # fmt: skip


def values(records: list[Any], **options: Any) -> dict[str, Any]:
    return {k: v["value"] for k, v in describe_transformation(records, **options).items()}


def test_by_hand() -> None:
    found = values(FIVE)
    assert found["accuracy_before"] == 0.8
    assert found["accuracy_after"] == 0.8
    assert found["retention"] == 0.75
    assert found["recovery"] == 1.0
    assert found["consistency"] == 0.6


def test_the_identity_of_the_four() -> None:
    found = values([*FIVE, record(0, 1, 1), record(1, 0, 2), record(2, 2, 1)])
    before = found["accuracy_before"]
    expected = found["retention"] * before + found["recovery"] * (1 - before)
    assert found["accuracy_after"] == pytest.approx(expected)


def test_nothing_changes_and_nothing_can_be_said() -> None:
    same = [record(i, i, i) for i in range(4)]
    assert values(same)["retention"] == 1.0
    assert values(same)["consistency"] == 1.0
    assert values(same)["recovery"] is None
    assert describe_transformation(same)["recovery"]["ci95"] is None
    assert values([record(0, 1, 0)])["retention"] is None
    assert set(values([]).values()) == {None}


def test_a_constant_classifier_keeps_what_it_has() -> None:
    found = values([record(i % 2, 0, 0) for i in range(10)])
    assert found["retention"] == 1.0
    assert found["accuracy_before"] == found["accuracy_after"] == 0.5


def test_confidence() -> None:
    found = values([record(0, 0, 0, p=(0.9, 0.5)), record(0, 0, 0, p=(0.2, 0.4))])
    assert found["confidence_change"] == pytest.approx(0.3)


def test_errors_and_skipped_videos_do_not_count() -> None:
    left_out = [{"status": "skipped", "label": None}, {"status": "error", "label": 1}]
    assert values([*FIVE, *left_out]) == values(FIVE)


def test_draws_of_a_random_defense_are_parts_of_a_video() -> None:
    corner = lambda pred: {"pred": pred, "p_label": 0.5}  # noqa: E731
    drawn = {
        "status": "ok", "label": 0, "clean": corner(0), "attacked": corner(1),
        "clean_defended": [corner(0), corner(0)], "attacked_defended": [corner(0), corner(1)],
    }  # fmt: skip
    assert values([drawn])["retention"] == 0.0
    assert values([drawn], defended=True)["retention"] == 0.5
    assert describe_transformation([drawn], defended=True)["retention"]["method"] == "bootstrap"


def test_which_runs_are_transformations() -> None:
    part = {"role": "attack", "access": "none"}
    assert is_transformation({"components": [{"role": "model"}, part]})
    assert not is_transformation({"components": [{**part, "access": "score"}]})
    assert not is_transformation({})
