"""Flags that need no extra evaluation: of one run, and of runs next to each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vcr_core.health import comparative_flags, run_flags
from vcr_core.reporters.rows import make_rows
from vcr_core.summary import RunView


def defended(
    name: str,
    robust: float,
    *,
    adaptive: bool,
    protocol: dict[str, Any] | None = None,
    **changes: Any,
) -> RunView:
    """A run behind a defense; the robust accuracy is that of the defended model."""
    run = view(name, 0.0, **changes)
    experiment = run.manifest["experiment"]
    experiment["defense"] = [{"name": "jpeg", "quality": 75}]
    experiment["protocol"] = {"attacker_knows_defense": adaptive, **(protocol or {})}
    rate = {"value": robust, "k": round(robust * 100), "n": 100, "ci95": [0, 1]}
    definitions = {**run.summary["definitions"], "defended_robust_accuracy": rate}
    return RunView(run.folder, run.manifest, [], {"definitions": definitions})


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


def test_an_attack_that_does_better_without_knowing_the_defense() -> None:
    known, unknown = (
        defended("known", 0.75, adaptive=True, protocol={"eot": 8}),
        defended("unknown", 0.67, adaptive=False),
    )
    assert comparative_flags([known, unknown]) == {"known": {"unaware-beats-adaptive"}}
    rows = {row.run: row for row in make_rows([known, unknown])}
    assert rows["known"].flags == ("unaware-beats-adaptive",)
    # The worse of both stands beside both, whichever it is.
    assert [row.extras["worse_robust_accuracy"].value for row in rows.values()] == [0.67, 0.67]


def test_the_worse_of_a_pair_is_the_adaptive_one_as_a_rule() -> None:
    runs = [defended("known", 0.2, adaptive=True), defended("unknown", 0.6, adaptive=False)]
    assert comparative_flags(runs) == {}
    assert {row.extras["worse_robust_accuracy"].value for row in make_rows(runs)} == {0.2}


def test_less_than_two_points_raise_no_flag() -> None:
    runs = [defended("known", 0.61, adaptive=True), defended("unknown", 0.6, adaptive=False)]
    assert comparative_flags(runs) == {}
    assert {row.extras["worse_robust_accuracy"].value for row in make_rows(runs)} == {0.6}


def test_only_runs_that_differ_in_nothing_else_are_a_pair() -> None:
    known = defended("known", 0.9, adaptive=True)
    for other in (
        defended("eps", 0.1, adaptive=False, eps="4/255"),
        defended("attack", 0.1, adaptive=False, attack="ifgsm"),
        defended("steps", 0.1, adaptive=False, steps=20),
        defended("views", 0.1, adaptive=False, protocol={"views": "full"}),
        defended("running", 0.1, adaptive=False, status="running"),
        defended("both-known", 0.1, adaptive=True),
    ):
        assert comparative_flags([known, other]) == {}
        assert all("worse_robust_accuracy" not in row.extras for row in make_rows([known, other]))


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


def test_a_longer_shift_is_no_longer_attack() -> None:
    """The steps of a natural shift say where to, not how hard anybody tries."""
    near = view("near", 0.3, attack="natural-shift", access="none", steps=1)
    far = view("far", 0.9, attack="natural-shift", access="none", steps=5)
    assert comparative_flags([near, far]) == {}
