"""Flags that need no extra evaluation: of one run, and of runs next to each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vcr_core.health import comparative_flags, run_flags
from vcr_core.reporters.rows import make_rows
from vcr_core.summary import RunView


def view(
    name: str,
    robust: float,
    *,
    attack: str = "pgd",
    access: str = "white-box",
    eps: str = "2/255",
    steps: int = 10,
    model: str = "m",
    status: str = "done",
) -> RunView:
    experiment: dict[str, Any] = {
        "dataset": {"name": "vcr-core/motion"},
        "model": {"name": model},
        "attack": {"name": attack, "steps": steps},
        "threat": {"norm": "linf", "eps": eps, "targeted": False},
        "protocol": {},
    }
    manifest = {
        "run": name,
        "status": status,
        "experiment": experiment,
        "components": [{"role": "attack", "access": access}],
        "dataset": {"fingerprint": "f"},
    }
    rate = {"value": robust, "k": round(robust * 20), "n": 20, "ci95": [0, 1]}
    return RunView(Path(name), manifest, [], {"definitions": {"robust_accuracy": rate}})


def test_a_larger_radius_that_leaves_more_videos_standing() -> None:
    runs = [view("small", 0.3), view("large", 0.5, eps="4/255"), view("larger", 0.2, eps="8/255")]
    assert comparative_flags(runs) == {"large": {"larger-eps-does-not-help"}}


def test_one_video_more_is_no_flag() -> None:
    assert comparative_flags([view("a", 0.3), view("b", 0.35, eps="4/255")]) == {}


def test_more_steps_that_do_less() -> None:
    runs = [view("few", 0.3), view("many", 0.6, steps=100)]
    assert comparative_flags(runs) == {"many": {"more-steps-do-not-help"}}


def test_an_attack_without_gradients_that_beats_all_with_them() -> None:
    blind = view("blind", 0.1, attack="square", access="score")
    runs = [view("a", 0.5), view("b", 0.4, attack="ifgsm"), blind]
    assert comparative_flags(runs) == {
        "a": {"blackbox-beats-whitebox"},
        "b": {"blackbox-beats-whitebox"},
    }
    assert comparative_flags([*runs, view("c", 0.1, attack="apgd")]) == {}


def test_only_finished_runs_of_the_same_system_are_compared() -> None:
    small = view("small", 0.1)
    assert comparative_flags([small, view("other", 0.9, eps="4/255", model="n")]) == {}
    assert comparative_flags([small, view("half", 0.9, eps="4/255", status="running")]) == {}


def test_they_reach_the_tables() -> None:
    rows = make_rows([view("small", 0.3), view("large", 0.5, eps="4/255")])
    assert {row.run: row.flags for row in rows} == {
        "small": (),
        "large": ("larger-eps-does-not-help",),
    }


def test_budgets_that_ran_out_often() -> None:
    def record(exhausted: bool) -> dict[str, Any]:
        return {"status": "ok", "success": {}, "cost": {"budget_exhausted": exhausted}}

    often = [record(True), record(True), record(False)]
    assert run_flags(often, errors_over_budget=False) == ["budget-exhausted-often"]
    assert run_flags(often[1:], errors_over_budget=True) == ["errors-over-budget"]
