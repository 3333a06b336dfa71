"""Operators that change a segment: numbers by hand, settings apart."""

from __future__ import annotations

import math
from typing import Any

import pytest

pytest.importorskip("numpy")

from vcr_core.robustness.collect import collect

FIVE = ("drop", "mask", "rotate", "substitute", "repeat")


def first(count: int, of: int = 10) -> list[bool]:
    return [index < count for index in range(of)]


def value(entry: dict[str, Any]) -> float | None:
    return entry["value"]


@pytest.mark.golden
def test_by_hand(make: Any) -> None:
    runs = [
        make.tampering("drop", first(8), first(6), transform=[{"overlap": 0.25}] * 10),
        make.tampering("mask", first(8), first(2), transform=[{"duration_effective": 0.5}] * 10),
    ]
    (section,) = collect(runs).sections
    found = section.systems["m"]
    drop, mask = found["types"]["drop"], found["types"]["mask"]
    assert value(drop["accuracy"]) == 0.6
    assert value(drop["drop"]) == pytest.approx(0.2)
    assert value(drop["relative"]) == pytest.approx(0.75)
    assert value(drop["retention"]) == 0.75
    assert value(drop["consistency"]) == 0.8
    assert drop["overlap"] == 0.25
    assert mask["segment_s"] == 0.5
    assert value(mask["retention"]) == 0.25
    overall = found["overall"]
    assert value(overall["clean"]) == 0.8
    assert value(overall["mean"]) == pytest.approx(0.4)
    assert (value(overall["worst"]), overall["worst"]["type"]) == (0.2, "mask")
    assert value(overall["relative"]) == pytest.approx(0.5)
    assert value(overall["retention"]) == pytest.approx(0.5)
    # Mean .4, deviation of the population .2: 1 - .2 / .4
    assert value(overall["coefficient"]) == pytest.approx(0.5)


def test_operators_that_do_the_same_have_a_coefficient_of_one(make: Any) -> None:
    runs = [make.tampering(name, first(9), first(5)) for name in FIVE]
    (section,) = collect(runs).sections
    assert (section.suite, section.extent) == ("mvt5", "")
    overall = section.systems["m"]["overall"]
    assert value(overall["coefficient"]) == pytest.approx(1)
    low, high = overall["coefficient"]["ci95"]
    assert (low, high) == pytest.approx((1, 1))


def test_what_has_no_value_says_why(make: Any) -> None:
    one = collect([make.tampering("drop", first(8), first(6))]).sections[0]
    assert one.systems["m"]["overall"]["coefficient"]["reason"] == "one type has no spread"
    none = [make.tampering(name, first(0), first(0)) for name in FIVE]
    overall = collect(none).sections[0].systems["m"]["overall"]
    assert overall["coefficient"]["reason"] == "no right prediction at all"
    assert overall["relative"]["reason"] == "clean accuracy is 0"
    assert overall["retention"]["reason"] == "no right prediction before"


def test_a_missing_operator_is_not_averaged_over(make: Any) -> None:
    runs = [
        make.tampering(name, first(8), first(4), model=model)
        for model, names in (("m", FIVE), ("n", FIVE[:-1]))
        for name in names
    ]
    (section,) = collect(runs).sections
    overall = section.systems["n"]["overall"]
    assert overall["mean"]["reason"] == "incomplete: no repeat"
    assert overall["worst"]["value"] is None
    assert value(section.systems["m"]["overall"]["mean"]) == pytest.approx(0.4)


def test_lengths_and_places_are_apart(make: Any) -> None:
    runs = [
        make.tampering("drop", first(8), first(6)),
        make.tampering("drop", first(8), first(7), params={"location": "start"}),
        make.tampering("drop", first(8), first(5), params={"duration_s": 2.0}),
        make.tampering("drop", first(8), first(4), params={"duration_frames": 4}),
    ]
    found = {
        str(s.setting): value(s.systems["m"]["types"]["drop"]["accuracy"])
        for s in collect(runs).sections
    }
    assert sorted(found.values()) == [0.4, 0.5, 0.6, 0.7]
    assert any("duration_frames" in key and "duration_s" not in key for key in found)


def test_the_five_are_part_of_the_eight(make: Any) -> None:
    runs = [make.tampering(name, first(8), first(6)) for name in FIVE]
    runs += [
        make.tampering(name, first(8), first(3), suite=["mvt8"])
        for name in ("noise", "local-mask", "shuffle")
    ]
    five, eight = collect(runs).sections
    assert (five.suite, five.within) == ("mvt5", "mvt8")
    assert (eight.suite, eight.within) == ("mvt8", "")
    assert value(five.systems["m"]["overall"]["mean"]) == pytest.approx(0.6)
    mean = (5 * 0.6 + 3 * 0.3) / 8
    overall = eight.systems["m"]["overall"]
    assert value(overall["mean"]) == pytest.approx(mean)
    spread = math.sqrt((5 * (0.6 - mean) ** 2 + 3 * (0.3 - mean) ** 2) / 8)
    assert value(overall["coefficient"]) == pytest.approx(1 - spread / mean)
