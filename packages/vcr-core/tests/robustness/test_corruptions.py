"""Published aggregates of corruptions on tables whose every number is worked out in the test."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("numpy")

from vcr_core.errors import UsageError
from vcr_core.robustness.collect import collect
from vcr_core.stats import Term, bootstrap_ratio, wilson

MANY = 10


def first(count: int, of: int = MANY) -> list[bool]:
    return [index < count for index in range(of)]


def value(entry: dict[str, Any]) -> float | None:
    return entry["value"]


def system(runs: list[Any], name: str = "m", reference: str = "") -> dict[str, Any]:
    (section,) = collect(runs, reference).sections
    return dict(section.systems[name])


@pytest.fixture
def table(make: Any) -> Any:
    """Clean 8 of 10. Type ``a``: 6 and 4 right after; type ``b``: 7 and 5."""

    def runs(model: str = "m", clean: int = 8, after: Any = (6, 4, 7, 5), **options: Any) -> Any:
        return [
            make.corruption(name, severity, first(clean), first(right), model=model, **options)
            for (name, severity), right in zip(
                [("a", 1), ("a", 2), ("b", 1), ("b", 2)], after, strict=True
            )
        ]

    return runs


@pytest.mark.golden
def test_two_by_two_by_hand(table: Any) -> None:
    found = system(table())
    # PC_a = (.6 + .4) / 2 = .5, PC_b = (.7 + .5) / 2 = .6
    assert value(found["types"]["a"]["pc"]) == pytest.approx(0.5)
    assert value(found["types"]["b"]["pc"]) == pytest.approx(0.6)
    overall = found["overall"]
    assert value(overall["clean"]) == 0.8
    # mPC = (.5 + .6) / 2, rPC = .55 / .8
    assert value(overall["mpc"]) == pytest.approx(0.55)
    assert value(overall["rpc"]) == pytest.approx(0.6875)
    # gamma_a: 1 - (.8 - A_cs) = .8, .6, .9, .7; gamma_r: A_cs / .8 = .75, .5, .875, .625
    assert value(found["types"]["a"]["gamma_a"]) == pytest.approx(0.7)
    assert value(found["types"]["b"]["gamma_r"]) == pytest.approx(0.75)
    assert value(overall["gamma_a"]) == pytest.approx(0.75)
    assert value(overall["gamma_r"]) == pytest.approx(0.6875)
    # The first are right before and after: R = 6/8, 4/8, 7/8, 5/8, mean .6875
    assert value(overall["mr"]) == pytest.approx(0.6875)
    # Area of a: ((.8 + .6) / 2 + (.6 + .4) / 2) / 2 = .6; of b: ((.8 + .7) / 2 + .6) / 2 = .675
    assert value(found["types"]["a"]["area"]) == pytest.approx(0.6)
    assert value(overall["area"]) == pytest.approx(0.6375)
    cell = found["types"]["a"]["severities"]["2"]
    assert value(cell["accuracy"]) == 0.4
    assert value(cell["gamma_r"]) == pytest.approx(0.5)
    assert cell["accuracy"]["method"] == "wilson"
    assert cell["accuracy"]["ci95"] == list(wilson(4, 10))


@pytest.mark.golden
def test_the_leaderboard_row_of_timesformer(make: Any) -> None:
    """Yi et al.: 82.2 clean, 71.4 mPC, 86.9 rPC."""
    run = make.corruption("a", 1, first(822, 1000), first(714, 1000))
    overall = system([run])["overall"]
    assert value(overall["rpc"]) == pytest.approx(0.8686, abs=5e-5)


def test_relative_robustness_averages_to_rpc_where_groups_are_equal(table: Any) -> None:
    overall = system(table())["overall"]
    assert value(overall["rpc"]) == pytest.approx(value(overall["gamma_r"]))


def test_groups_weigh_equally_in_gamma_and_types_do_in_mpc(make: Any) -> None:
    runs = [
        make.corruption(name, 1, first(10), first(right), group=group, suites=())
        for name, group, right in (("a", "noise", 2), ("b", "noise", 4), ("c", "blur", 9))
    ]
    found = system(runs)
    assert value(found["overall"]["mpc"]) == pytest.approx((0.2 + 0.4 + 0.9) / 3)
    assert value(found["overall"]["gamma_r"]) == pytest.approx((0.3 + 0.9) / 2)
    assert value(found["groups"]["noise"]["pc"]) == pytest.approx(0.3)
    assert found["types"]["c"]["group"] == "blur"


def test_a_gain_is_not_clipped(make: Any) -> None:
    found = system([make.corruption("a", 1, first(4), first(5))])
    assert value(found["types"]["a"]["gamma_r"]) == pytest.approx(1.25)


@pytest.mark.golden
def test_corruption_error_by_hand(table: Any) -> None:
    runs = [*table(), *table(model="ref", clean=9, after=(8, 6, 8, 8))]
    found = system(runs, "m", "ref")
    # E_a: .4 + .6 = 1.0 beside .2 + .4 = .6; E_b: .3 + .5 = .8 beside .2 + .2 = .4
    assert value(found["types"]["a"]["ce"]) == pytest.approx(1.0 / 0.6)
    assert value(found["types"]["b"]["ce"]) == pytest.approx(2.0)
    assert value(found["overall"]["mce"]) == pytest.approx((1.0 / 0.6 + 2) / 2)
    # What is added to the clean error: .2 + .4 beside .1 + .3; .1 + .3 beside .1 + .1
    assert value(found["types"]["a"]["relative_ce"]) == pytest.approx(0.6 / 0.4)
    assert value(found["types"]["b"]["relative_ce"]) == pytest.approx(0.4 / 0.2)
    assert value(found["overall"]["relative_mce"]) == pytest.approx(1.75)


def test_the_reference_has_an_error_of_one(table: Any) -> None:
    overall = system(table(), "m", "m")["overall"]
    assert value(overall["mce"]) == pytest.approx(1)
    assert overall["mce"]["ci95"] == pytest.approx([1, 1])
    assert value(overall["relative_mce"]) == pytest.approx(1)


def test_without_a_reference_there_is_no_corruption_error(table: Any) -> None:
    found = system(table())
    assert "mce" not in found["overall"]
    assert "ce" not in found["types"]["a"]


def test_an_unknown_reference_is_refused(table: Any) -> None:
    with pytest.raises(UsageError, match=r"reference 'alexnet': .* there are: m"):
        collect(table(), "alexnet")


def test_a_reference_that_errs_nowhere_divides_nothing(table: Any) -> None:
    runs = [*table(), *table(model="ref", clean=10, after=(10, 10, 10, 10))]
    overall = system(runs, "m", "ref")["overall"]
    assert overall["mce"]["value"] is None
    assert overall["mce"]["reason"] == "the reference makes no error under a"
    assert overall["relative_mce"]["reason"] == "the reference loses nothing under a"


def test_a_missing_severity_is_not_averaged_over(table: Any) -> None:
    runs = [*table(), *table(model="other")[:3]]
    found = system(runs, "other")
    assert value(found["types"]["a"]["pc"]) == pytest.approx(0.5)
    assert found["types"]["b"]["pc"]["value"] is None
    reason = "incomplete: b has no severity 2"
    assert found["types"]["b"]["pc"]["reason"] == reason
    for name in ("mpc", "rpc", "gamma_a", "gamma_r", "mr", "area"):
        assert found["overall"][name]["value"] is None
        assert found["overall"][name]["reason"] == reason
    assert value(found["overall"]["clean"]) == 0.8
    assert value(system(runs, "m")["overall"]["mpc"]) == pytest.approx(0.55)


def test_a_reference_that_lacks_a_cell_gives_no_error(table: Any) -> None:
    overall = system([*table(), *table(model="ref")[1:]], "m", "ref")["overall"]
    assert overall["mce"]["reason"] == "the reference lacks a"


def test_nothing_right_before(make: Any) -> None:
    found = system([make.corruption("a", 1, first(0), first(3))])
    assert found["overall"]["rpc"]["reason"] == "clean accuracy is 0"
    assert found["overall"]["mr"]["reason"] == "no right prediction before"
    assert value(found["overall"]["mpc"]) == pytest.approx(0.3)


def test_severity_zero_changes_nothing_and_is_not_averaged(table: Any, make: Any) -> None:
    found = system([*table(), make.corruption("a", 0, first(8), first(8))])
    assert value(found["overall"]["mpc"]) == pytest.approx(0.55)
    assert value(found["types"]["a"]["severities"]["0"]["retention"]) == 1


def test_the_video_is_the_cluster(make: Any) -> None:
    """Twenty equal cells say no more about videos than one."""
    after = [index % 3 == 0 for index in range(60)]
    runs = [
        make.corruption(f"t{kind}", severity, [True] * 60, after, suites=())
        for kind in range(4)
        for severity in range(1, 6)
    ]
    mpc = system(runs)["overall"]["mpc"]
    one = bootstrap_ratio([Term(float(right)) for right in after])
    assert mpc["value"] == pytest.approx(one.value)
    assert mpc["ci95"] == pytest.approx([one.low, one.high])


def test_intervals(make: Any) -> None:
    """They contain the point, shrink like 1/sqrt(n), repeat, and agree with Wilson's at 200."""
    widths = {}
    for n in (50, 200, 800):
        after = [(7 * index) % 10 < 6 for index in range(n)]
        run = make.corruption("a", 1, [True] * n, after)
        mpc = system([run])["overall"]["mpc"]
        low, high = mpc["ci95"]
        assert low < mpc["value"] < high
        assert system([run])["overall"]["mpc"] == mpc
        widths[n] = high - low
        if n == 200:
            assert (low, high) == pytest.approx(wilson(sum(after), n), abs=0.02)
    assert widths[50] / widths[200] == pytest.approx(2, rel=0.15)
    assert widths[200] / widths[800] == pytest.approx(2, rel=0.15)


def test_empty_denominators_are_dropped_and_few_videos_are_marked(make: Any) -> None:
    retention = system([make.corruption("a", 1, first(1), first(1))])["overall"]["mr"]
    # No draw of 10 holds the one right video with probability .9 ** 10 = .35
    assert 500 < retention["dropped"] < 900
    assert retention["few_videos"]
    many = system([make.corruption("a", 1, first(10, 20), first(5, 20))])["overall"]["mpc"]
    assert "few_videos" not in many
    assert "dropped" not in many


def test_draws_of_a_random_defense_are_shares(make: Any) -> None:
    before = [(True, True), (True, False)]
    after = [(True, False), (False, False)]
    found = system([make.corruption("a", 1, before, after, defense="smooth")], "m + smooth")
    # Before (1 + .5) / 2, after (.5 + 0) / 2, kept the same as after.
    assert value(found["overall"]["clean"]) == pytest.approx(0.75)
    assert value(found["overall"]["mpc"]) == pytest.approx(0.25)
    assert value(found["overall"]["mr"]) == pytest.approx(0.5 / 1.5)
    assert found["overall"]["clean"]["method"] == "bootstrap"


def test_a_failed_video_is_in_neither_part_of_a_cell(make: Any) -> None:
    run = make.corruption("a", 1, first(8), first(4))
    run.records[9].update(status="error")
    cell = system([run])["types"]["a"]["severities"]["1"]
    assert cell["n"] == 9
    assert value(cell["accuracy"]) == pytest.approx(4 / 9)
