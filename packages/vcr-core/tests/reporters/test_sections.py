from __future__ import annotations

import re
from typing import Any

import pytest
from vcr_core.reporters.charts import bar_panels
from vcr_core.reporters.environments import environments
from vcr_core.reporters.log_axis import LogAxis, axis_over
from vcr_core.reporters.problems import error_kinds, raised_flags
from vcr_core.reporters.queries import query_panels, search_of
from vcr_core.reporters.rows import paired_rows
from vcr_core.reporters.trade_offs import trade_offs


def searching(records: Any, count: int, *, first: int | None, spent: int) -> list[dict[str, Any]]:
    found = [records.video(f"{first}-{i}", right=True, held=first is None) for i in range(count)]
    for record in found:
        record["cost"] = {"forwards": spent, "t_attack_s": spent / 10, "t_eval_s": 0.2}
        if first is not None:
            record["cost"]["queries_to_first_success"] = first
    return found


def test_errors_are_counted_by_kind_over_all_runs(make_run: Any, records: Any) -> None:
    bad = [records.error(f"e{i}", f"message {i}") for i in range(3)]
    other = {**records.error("o", "out of memory")}
    other["error"] = {"type": "OutOfMemoryError", "stage": "attack", "message": "no room"}
    runs = [make_run(records=bad), make_run(records=[*bad[:1], other])]
    first, second = error_kinds(paired_rows(runs))
    assert (first.type, first.stage, first.videos) == ("VideoReadError", "decode", 4)
    assert (first.video, first.example) == ("e0", "message 0")
    assert len(first.runs) == 2
    assert (second.type, second.videos, len(second.runs)) == ("OutOfMemoryError", 1, 1)


def test_flags_name_their_runs_and_count_their_videos(make_run: Any, records: Any) -> None:
    found = [records.video(f"v{i}", right=True, held=True) for i in range(4)]
    for record in found[:3]:
        record["flags"] = ["zero-gradient"]
    runs = [make_run(records=found), make_run(flags=("unheard-of",))]
    flags = {flag.name: flag for flag in raised_flags(paired_rows(runs))}
    assert flags["zero-gradient"].videos == 3
    assert flags["unheard-of"].videos == 0
    assert list(flags["unheard-of"].runs) == [runs[1].name]


def test_success_counts_at_the_query_that_first_met_the_goal(records: Any) -> None:
    search = search_of([
        *searching(records, 3, first=5, spent=40),
        *searching(records, 2, first=30, spent=30),
        *searching(records, 5, first=None, spent=100),
    ])  # fmt: skip
    assert search is not None
    shares = [search.success(budget).value for budget in (4, 5, 29, 30, 100)]
    assert shares == [0.0, 0.3, 0.3, 0.5, 0.5]


def test_success_that_no_query_showed_counts_at_the_end(records: Any) -> None:
    found = searching(records, 2, first=7, spent=20)
    del found[0]["cost"]["queries_to_first_success"]
    search = search_of(found)
    assert search is not None
    assert [search.success(b).k for b in (7, 19, 20)] == [1, 1, 2]


def test_attacks_that_ask_nothing_have_no_curve(make_run: Any, records: Any) -> None:
    found = searching(records, 4, first=None, spent=0)
    assert search_of(found) is None
    assert query_panels(paired_rows([make_run(records=found)])) == ([], [])


def test_query_curves_rise_in_steps_and_stay_small(make_run: Any, records: Any) -> None:
    found = [r for q in range(1, 900) for r in searching(records, 1, first=q, spent=q)]
    (series,), (panel,) = query_panels(paired_rows([make_run(records=found)]))
    (line,) = panel.lines
    assert series.label == "ifgsm"
    assert panel.axis == "forward passes"
    places = [tuple(map(float, part.split())) for part in re.split("[ML] ?", line.path)[1:]]
    assert len(places) < 120
    xs, ys = zip(*places, strict=True)
    assert list(xs) == sorted(xs)
    assert list(ys) == sorted(ys, reverse=True)
    assert "899 forward passes: 100.0 %" in line.points[-1].title


def test_costs_are_compared_where_attacks_differ(make_run: Any, records: Any) -> None:
    quick = make_run(records=searching(records, 4, first=3, spent=10))
    slow = make_run(attack="pgd", records=searching(records, 4, first=3, spent=1000))
    assert trade_offs(paired_rows([quick])) == ([], [])
    series, (panel,) = trade_offs(paired_rows([quick, slow]))
    assert [one.label for one in series] == ["ifgsm", "pgd"]
    near, far = sorted(panel.dots, key=lambda dot: dot.x)
    assert (near.run, far.run) == (quick.name, slow.name)
    assert "at 100 s" in far.title


def test_defenses_are_compared_by_the_time_of_judging(make_run: Any, records: Any) -> None:
    def run(defense: str | None) -> Any:
        found = searching(records, 4, first=3, spent=10)
        for record in found:
            if defense:
                record["clean_defended"] = record["clean"]
                record["attacked_defended"] = [record["attacked"]]
        return make_run(defense=defense, records=found)

    series, (panel,) = trade_offs(paired_rows([run(None), run("median"), run("jpeg")]))
    assert (panel.title, panel.axis) == ("Defenses", "judging time a video, s")
    assert [one.label for one in series] == ["jpeg", "median", "no defense"]


def test_axis_over_orders_of_magnitude() -> None:
    axis = LogAxis(1, 1000)
    assert axis.at(1) < axis.at(10) < axis.at(1000)
    assert axis.at(10) - axis.at(1) == pytest.approx(axis.at(100) - axis.at(10), abs=0.2)
    assert axis.at(0) == axis.at(0.5) == axis.at(1)
    assert [tick.text for tick in axis.ticks()] == ["1", "2", "5", "10", "20", "50", "100", "200",
                                                    "500", "1000"]  # fmt: skip
    wide = [tick.text for tick in LogAxis(1, 1e9).ticks()]
    assert wide == ["1", "10", "100", "1000", "10k", "100k", "1M", "10M", "100M", "1000M"]
    assert axis_over([0.0]) is None


def test_systems_that_no_test_tells_apart_share_a_letter(make_run: Any, records: Any) -> None:
    def run(model: str, held: int) -> Any:
        found = [records.video(f"v{i}", right=True, held=i < held) for i in range(40)]
        return make_run(model=model, records=found)

    ordered = paired_rows([run("best", 40), run("near", 39), run("far", 5)])
    holds = {
        row.run: {r["video"]: r["attacked"]["pred"] == r["label"] for r in one.records}
        for row, one in ordered
    }
    (panel,) = bar_panels([row for row, _ in ordered], holds)
    assert [(bar.label, bar.letters) for bar in panel.bars] == [
        ("best", "a"), ("near", "a"), ("far", "b"),
    ]  # fmt: skip
    assert all(bar.letters == "" for p in bar_panels([ordered[0][0]], holds) for bar in p.bars)


def test_equal_environments_are_told_once(make_run: Any) -> None:
    def run(**versions: str) -> Any:
        return make_run(environment={"python": "3.11.9", "versions": versions})

    runs = [run(torch="2.9"), run(torch="2.9"), run(torch="2.8", extra="1"), make_run()]
    found = environments(paired_rows(runs[:3]))
    assert [len(one.runs) for one in found] == [2, 1]
    assert found[0].differences == ()
    assert {(fact.name, fact.value) for fact in found[1].differences} == {
        ("torch", "2.8"), ("extra", "1"),
    }  # fmt: skip
