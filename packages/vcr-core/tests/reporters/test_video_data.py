from __future__ import annotations

import json
from typing import Any

import pytest
from vcr_core.reporters.rows import paired_rows
from vcr_core.reporters.script_data import json_for_script
from vcr_core.reporters.video_data import OUTCOMES, drill_down, outcome_of


def drawn(records: Any, before: list[int | None], after: list[int | None]) -> dict[str, Any]:
    """A record of label 0 behind a random defense: what it answered, draw by draw."""
    found = records.video("v", right=True, held=True, defended=(True, True))
    sides = (("clean_defended", before), ("attacked_defended", after))
    for name, answers in sides:
        found[name] = [
            {"pred": a, "p_label": 0.5, "p_pred": 0.5, "abstained": a is None} for a in answers
        ]
    return found


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([0], [0], "held"),
        ([0], [1], "fell"),
        ([1], [0], "wrong before"),
        ([0], [None], "abstained"),
        ([0, 0], [0, 1], "mixed"),
        ([0, 0], [1, 2], "fell"),
        ([0, 1], [1, 1], "mixed"),
    ],
)
def test_outcomes_of_attacked_videos(
    records: Any, before: list[int | None], after: list[int | None], expected: str
) -> None:
    record = drawn(records, before, after)
    assert outcome_of(record, defended=True, attacked=True) == expected
    assert outcome_of(record, defended=False, attacked=True) == "held"


def test_outcomes_without_an_attack_and_without_a_prediction(records: Any) -> None:
    right = records.video("v", right=True, held=None)
    assert outcome_of(right, defended=False, attacked=False) == "right"
    wrong = records.video("v", right=False, held=None)
    assert outcome_of(wrong, defended=False, attacked=False) == "wrong"
    silent = drawn(records, [None], [None])
    assert outcome_of(silent, defended=True, attacked=False) == "abstained"
    assert outcome_of(records.error("v", "cut off"), defended=False, attacked=True) == "error"
    assert outcome_of({"status": "skipped"}, defended=False, attacked=True) == "skipped"


def test_columns_are_equally_long_and_refer_to_shared_names(make_run: Any, records: Any) -> None:
    found = [records.video(f"v{i}", right=i > 0, held=i > 1) for i in (2, 0, 1)]
    found.append(records.error("x", "cut off"))
    data = drill_down(paired_rows([make_run(records=found), make_run(model="other", attack=None)]))
    (dataset,) = data["datasets"]
    assert dataset["videos"] == sorted(dataset["videos"])
    attacked = next(run for run in data["runs"] if run["is_attacked"])
    assert [dataset["videos"][i] for i in attacked["video"]] == ["v2", "v0", "v1", "x"]
    assert [OUTCOMES[code] for code in attacked["outcome"]] == [
        "held", "wrong before", "fell", "error",
    ]  # fmt: skip
    assert attacked["attacked"][2] == [1, 0.6, 0.1]
    assert attacked["attacked"][3] is None
    assert attacked["costs"]["forwards"] == [10, 10, 10, None]
    assert attacked["notes"] == {"3": ["VideoReadError while in decode: cut off"]}
    lengths = {len(column) for column in attacked.values() if isinstance(column, list)} - {1}
    assert lengths == {4}
    assert "target" not in attacked
    clean = next(run for run in data["runs"] if not run["is_attacked"])
    assert "attacked" not in clean
    assert clean["costs"] == {}


def test_classes_count_right_robust_and_say_what_videos_are_taken_for(
    make_run: Any, records: Any
) -> None:
    found = [records.video(f"v{i}", right=i < 6, held=i < 2) for i in range(8)]
    found[7]["attacked"]["pred"] = 2
    data = drill_down(paired_rows([make_run(records=found)]))
    ((label, n, right, ends, robust, _, taken, times),) = data["runs"][0]["classes"]
    assert (label, n, right, robust) == (0, 8, 6, 2)
    assert ends[0] < 6 / 8 < ends[1]
    assert (taken, times) == (1, 5)


def test_draws_are_counted(make_run: Any, records: Any) -> None:
    run = make_run(defense="noise", records=[drawn(records, [0, 0, 0], [0, 1, 1])])
    data = drill_down(paired_rows([run]))["runs"][0]
    assert data["clean_defended"] == [[0, 0.5, 0.5, 3, 3]]
    assert data["attacked_defended"] == [[0, 0.5, 0.5, 1, 3]]
    # Parts of draws make no count, so no interval of counts either.
    assert data["classes"][0][4:6] == [pytest.approx(0.33), None]


def test_script_data_cannot_leave_its_element() -> None:
    pytest.importorskip("markupsafe")
    hostile = ["</script><!--<script>", "a&b", "\u2028\u2029", "é"]
    text = str(json_for_script(hostile))
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == hostile


def test_script_data_refuses_what_json_cannot_say() -> None:
    pytest.importorskip("markupsafe")
    with pytest.raises(ValueError, match="JSON"):
        json_for_script([float("nan")])
