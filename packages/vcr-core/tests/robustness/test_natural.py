"""Neighbouring clips: every published number on record sets made by hand."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

pytest.importorskip("numpy")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vcr_core.robustness.collect import collect
from vcr_core.stats import clopper_pearson


def described(*runs: Any, model: str = "m", reference: str = "") -> dict[str, Any]:
    (section,) = collect(runs, reference).sections
    return dict(section.systems[model])


def value(entry: dict[str, Any]) -> float | None:
    return entry["value"]


ANCHOR = [True, True, True, True, False]
EARLIER = [True, True, True, False, True]
LATER = [True, True, False, False, False]


@pytest.mark.golden
def test_five_videos_by_hand(make: Any) -> None:
    """Four anchors are right; three of them stay right a step earlier, two a step later."""
    found = described(make.shift(-1, ANCHOR, EARLIER), make.shift(1, ANCHOR, LATER))
    earlier, later = found["steps"]["-1"], found["steps"]["1"]
    assert (value(earlier["retention"]), value(later["retention"])) == (0.75, 0.5)
    assert (value(earlier["recovery"]), value(later["recovery"])) == (1.0, 0.0)
    assert (value(earlier["accuracy"]), value(later["accuracy"])) == (0.8, 0.4)
    assert value(later["consistency"]) == 3 / 5
    # Pooled: numerators 3 + 2, denominators 4 + 4
    assert value(found["distances"]["1"]["retention"]) == pytest.approx(5 / 8)
    overall = found["overall"]
    assert value(overall["retention"]) == pytest.approx(5 / 8)
    assert overall["retention"]["n"] == 8
    assert value(overall["anchor_accuracy"]) == 0.8
    # Right on the anchor and both sides: v0 and v1
    assert value(overall["worst_accuracy"]) == 0.4
    assert value(overall["worst_drop"]) == pytest.approx(0.4)
    assert overall["worst_accuracy"]["complete"] == 5
    # Same label: 3 of 5 and 3 of 5
    assert value(overall["consistency"]) == pytest.approx(0.6)
    assert value(overall["flip_rate"]) == pytest.approx(0.4)
    # |.1 - .8| or |.8 - .1| where the outcome changes, twice in each of the two runs
    assert value(overall["confidence_change"]) == pytest.approx(0.7 * 4 / 10)


def test_the_identity_of_accuracy_retention_and_recovery(make: Any) -> None:
    for after in (EARLIER, LATER):
        step = described(make.shift(1, ANCHOR, after))["steps"]["1"]
        before = value(step["accuracy_before"])
        expected = value(step["retention"]) * before + value(step["recovery"]) * (1 - before)
        assert value(step["accuracy"]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.golden
def test_worst_cases_have_exact_intervals(make: Any) -> None:
    """scipy: 8 of 10 is within (0.4439, 0.9748)."""
    anchor = [True] * 9 + [False]
    after = [True] * 8 + [False] * 2
    overall = described(make.shift(1, anchor, after))["overall"]
    assert overall["worst_accuracy"]["ci95"] == pytest.approx((0.4439, 0.9748), abs=5e-5)
    assert overall["anchor_accuracy"]["ci95"] == list(clopper_pearson(9, 10))


def test_the_worst_case_widens_with_the_distance(make: Any) -> None:
    runs = [
        make.shift(1, [True] * 4, [True, True, True, False]),
        make.shift(-1, [True] * 4, [True] * 4),
        make.shift(2, [True] * 4, [True, False, True, True]),
        make.shift(-2, [True] * 4, [True, True, True, True]),
    ]
    found = described(*runs)
    assert value(found["distances"]["1"]["worst_accuracy"]) == 0.75
    assert value(found["distances"]["2"]["worst_accuracy"]) == 0.5
    assert found["overall"]["reach"] == 2


def test_the_same_clip_is_kept_and_not_pooled(make: Any) -> None:
    found = described(
        make.shift(0, ANCHOR, ANCHOR, perturbation=[{"linf": 0.0, "l2": 0.0}] * 5),
        make.shift(1, ANCHOR, LATER),
    )
    assert "0" not in found["steps"]
    assert value(found["overall"]["retention"]) == 0.5
    alone = described(make.shift(0, ANCHOR, ANCHOR))
    assert alone["overall"]["retention"]["reason"] == "no neighbour was evaluated"


def test_a_constant_classifier(make: Any) -> None:
    """It never changes its mind: R = 1, and accuracy is what it was."""
    right = [index % 4 == 0 for index in range(40)]
    found = described(make.shift(-1, right, right), make.shift(1, right, right))
    assert value(found["overall"]["retention"]) == 1
    assert value(found["overall"]["flip_rate"]) == 0
    assert value(found["overall"]["flip_probability"]) == 0
    step = found["steps"]["1"]
    assert value(step["accuracy"]) == value(step["accuracy_before"]) == 0.25


def test_a_classifier_that_guesses(make: Any) -> None:
    """Its guesses are independent: R is its accuracy."""
    rng = random.Random(3)
    before, after = ([rng.random() < 0.3 for _ in range(3000)] for _ in range(2))
    step = described(make.shift(1, before, after))["steps"]["1"]
    assert value(step["retention"]) == pytest.approx(0.3, abs=0.05)
    low, high = step["retention"]["ci95"]
    assert low < 0.3 < high


def test_a_neighbour_outside_of_the_video_asks_nothing(make: Any) -> None:
    found = described(
        make.shift(1, [True, True, True], [False, True, None]),
        make.shift(2, [True, True, True], [True, None, None]),
    )
    assert found["steps"]["1"]["n"] == 2
    assert found["steps"]["2"]["skipped"] == {"boundary": 2}
    # v0 fails at step 1, v1 has only step 1, v2 has no neighbour at all.
    assert value(found["overall"]["worst_accuracy"]) == 0.5
    assert found["overall"]["worst_accuracy"]["n"] == 2
    assert found["overall"]["worst_accuracy"]["complete"] == 1
    assert value(found["overall"]["retention"]) == pytest.approx(2 / 3)


@given(
    st.lists(
        st.tuples(st.booleans(), st.lists(st.booleans(), min_size=3, max_size=3)),
        min_size=1,
        max_size=12,
    )
)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_the_worst_case_is_no_better_than_any(
    make: Any, videos: list[tuple[bool, list[bool]]]
) -> None:
    anchors = [anchor for anchor, _ in videos]
    steps = (-1, 1, 2)
    found = described(
        *(make.shift(step, anchors, [n[i] for _, n in videos]) for i, step in enumerate(steps))
    )
    accuracies = [value(found["steps"][str(step)]["accuracy"]) for step in steps]
    least = min(value(found["overall"]["anchor_accuracy"]), *accuracies)
    assert value(found["overall"]["worst_accuracy"]) <= least + 1e-12


def test_a_missing_step_is_not_pooled_over(make: Any) -> None:
    runs = [make.shift(step, ANCHOR, LATER, model=m) for m in ("m", "n") for step in (-1, 1)][:3]
    found = described(*runs, model="n")
    reason = "incomplete: no run for steps 1"
    for name in ("retention", "flip_rate", "worst_accuracy", "worst_drop", "flip_probability"):
        assert found["overall"][name]["value"] is None
        assert found["overall"][name]["reason"] == reason
    assert found["distances"]["1"]["retention"]["reason"] == reason
    assert value(found["steps"]["-1"]["retention"]) == 0.5
    assert value(described(*runs)["overall"]["retention"]) == 0.5


@pytest.mark.golden
def test_flip_probability_by_hand(make: Any) -> None:
    """Labels along -1, 0, 1: right right wrong, right right right: FP = (1/2 + 0) / 2."""
    runs = [
        make.shift(-1, [True, True], [True, True]),
        make.shift(1, [True, True], [False, True]),
        make.shift(-1, [True, True], [False, False], model="ref"),
        make.shift(1, [True, True], [False, True], model="ref"),
    ]
    overall = described(*runs)["overall"]
    assert value(overall["flip_probability"]) == pytest.approx(0.25)
    assert overall["flip_probability"]["n"] == 2
    assert "flip_ratio" not in overall
    # The reference: wrong right wrong, wrong right right: (1 + 1/2) / 2 = .75
    overall = described(*runs, reference="ref")["overall"]
    assert value(overall["flip_ratio"]) == pytest.approx(0.25 / 0.75)
    own = described(*runs, model="ref", reference="ref")["overall"]
    assert value(own["flip_ratio"]) == pytest.approx(1)


def test_flips_need_consecutive_steps(make: Any) -> None:
    overall = described(make.shift(1, ANCHOR, LATER), make.shift(3, ANCHOR, LATER))["overall"]
    assert overall["flip_probability"]["reason"] == "the steps are not consecutive"


def test_distances_of_brittle_pairs(make: Any) -> None:
    sizes = [{"linf": 16 / 255, "l2": 3.0}, {"linf": 0.5, "l2": 6.0}, {"linf": 1.0, "l2": 9.0}]
    facts = [{"size": [2, 2], "indices": [0, 1, 2]}] * 3
    run = make.shift(1, [True] * 3, [False, False, True], perturbation=sizes, input=facts)
    pairs = described(run)["pairs"]
    brittle = pairs["brittle"]
    assert brittle["count"] == 2
    assert value(brittle["close"]) == 0.5
    assert value(brittle["linf_mean"]) == pytest.approx((16 / 255 + 0.5) / 2)
    assert value(brittle["linf_std"]) == pytest.approx((0.5 - 16 / 255) / 2)
    # Three frames of 2 x 2 pixels in three colours are 36 numbers: 3 / 6 and 6 / 6
    assert value(brittle["rms_mean"]) == pytest.approx(0.75)
    assert value(brittle["rms_std"]) == pytest.approx(0.25)
    assert pairs["all"]["count"] == 3
    assert value(pairs["all"]["close"]) == pytest.approx(1 / 3)


def test_a_measured_mse_is_preferred_to_the_norm(make: Any) -> None:
    metrics = [{"mse": {"value": 255.0**2 / 4}}] * 2
    run = make.shift(1, [True] * 2, [False] * 2, metrics=metrics)
    brittle = described(run)["pairs"]["brittle"]
    assert value(brittle["rms_mean"]) == pytest.approx(0.5)
    assert brittle["linf_mean"]["reason"] == "no distance was measured"
    kept = described(make.shift(1, [True], [True], metrics=metrics[:1]))["pairs"]["brittle"]
    assert kept["linf_mean"]["reason"] == "no such pair"


def test_all_steps_of_a_video_are_drawn_together(make: Any) -> None:
    """Ten equal neighbours have the interval of one."""
    after = [index % 2 == 0 for index in range(40)]
    steps = [*range(-5, 0), *range(1, 6)]
    many = described(*(make.shift(step, [True] * 40, after) for step in steps))["overall"]
    one = described(make.shift(1, [True] * 40, after))["overall"]
    assert many["retention"]["ci95"] == pytest.approx(one["retention"]["ci95"])
    width = many["retention"]["ci95"][1] - many["retention"]["ci95"][0]
    assert width == pytest.approx(2 * 1.96 * math.sqrt(0.25 / 40), rel=0.15)
