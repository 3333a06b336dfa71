from __future__ import annotations

from typing import Any

import pytest
from vcr_core.leaderboard.rerun import choose_batches, differences

BATCHES = [[f"v{2 * i}", f"v{2 * i + 1}"] for i in range(20)]


def record(**changes: Any) -> dict[str, Any]:
    return {
        "video": "v", "status": "ok", "label": 1, "attempt": 1, "host": "there", "batch": 7,
        "clean": {"pred": 1, "p_label": 0.75, "margin": 1.5, "top5": [1, 0]},
        "attacked_defended": [{"pred": 0, "margin": -0.5}],
        "cost": {"forwards": 10, "t_attack_s": 3.0, "chunk": 0},
        "metrics": {"psnr": {"value": 40.0}},
        **changes,
    }  # fmt: skip


def test_whole_batches_are_taken_until_there_are_enough() -> None:
    chosen = choose_batches(BATCHES, 3, "content", 0)
    assert len(chosen) == 2
    assert all(batch in BATCHES for batch in chosen)
    assert choose_batches(BATCHES, 0, "content", 0) == []
    assert len(choose_batches(BATCHES, 99, "content", 0)) == 20


def test_the_choice_is_fixed_by_content_and_seed_and_grows_with_the_number() -> None:
    first = choose_batches(BATCHES, 6, "content", 0)
    assert choose_batches(BATCHES, 6, "content", 0) == first
    assert choose_batches(BATCHES, 20, "content", 0)[:3] == first
    assert choose_batches(BATCHES, 6, "another", 0) != first
    assert choose_batches(BATCHES, 6, "content", 1) != first


def test_where_and_when_do_not_matter() -> None:
    here = record(attempt=3, host="here", batch=0, device="cuda:1")
    here["cost"] = {"forwards": 10, "t_attack_s": 9.0, "chunk": 4}
    assert list(differences(record(), here)) == []


def test_measured_numbers_may_differ_a_little_and_counts_not_at_all() -> None:
    here = record(metrics={"psnr": {"value": 40.01}}, cost={"forwards": 11})
    assert list(differences(record(), here)) == ["cost.forwards is 10 there, 11 here"]
    far = record(metrics={"psnr": {"value": 40.5}})
    assert list(differences(record(), far)) == ["metrics.psnr.value is 40 there, 40.5 here"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"label": 2}, "label is 1 there, 2 here"),
        ({"status": "ineligible"}, "status is ok there, ineligible here"),
        ({"attacked_defended": [{"pred": 1, "margin": -0.5}]},
         "attacked_defended[0].pred is 0 there, 1 here"),
        ({"attacked_defended": []}, "attacked_defended is [{'pred': 0, 'margin': -0.5}] there"),
        ({"metrics": {}}, "metrics.psnr is {'value': 40.0} there, None here"),
    ],
)  # fmt: skip
def test_outcomes_must_be_equal(changes: dict[str, Any], text: str) -> None:
    found = list(differences(record(), record(**changes)))
    assert found[0].startswith(text)


def test_a_field_that_an_older_version_did_not_write_cannot_disagree() -> None:
    assert list(differences(record(), record(certificate={"radius": 1.0}))) == []
    assert list(differences(record(certificate={"radius": 1.0}), record())) != []


def test_a_video_that_fails_here_is_said() -> None:
    here = {"video": "v", "status": "error", "error": {"type": "Boom", "message": "no"}}
    assert list(differences(record(), here)) == ["could not be evaluated here: Boom: no"]
    assert list(differences(here, {**here, "error": {"type": "Other"}})) == []
