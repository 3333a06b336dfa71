"""Certified accuracy over radii, average certified radius, abstentions; by hand."""

from __future__ import annotations

import json
import math

import pytest
from vcr_core import definitions
from vcr_core.certified import describe_certificates, largest_radius, radius_grid
from vcr_core.record_schema import validate_record
from vcr_core.stats import wilson
from vcr_core.summary import summarize
from vcr_core.tables import record_row

DIMS = 16 * 3 * 8 * 8


def make(video, label, found, radius, **more):
    return {
        "schema": 1, "run": "r", "video": video, "batch": 0, "shard": 0, "attempt": 1,
        "status": "ok", "label": label, "clean": {"pred": label},
        "clean_defended": {"pred": found, "abstained": found is None},
        "certificate": {
            "class": found, "radius": radius, "p_lower": 0.9 if radius else 0.4, "count": 95,
            "n0": 100, "n": 100, "alpha": 0.001, "sigma": 0.25, "norm": "l2", "dims": DIMS,
        },
        **more,
    }  # fmt: skip


@pytest.fixture
def five():
    records = [
        make("far", 0, 0, 0.30),
        make("near", 1, 1, 0.10),
        make("wrong", 2, 0, 0.35),
        make("silent", 0, None, 0.0),
        make("late", 0, 0, 0.20, status="ineligible"),
    ]
    for record in records:
        validate_record(record)
    return records


def test_by_hand(five):
    found = describe_certificates(five)
    assert found is not None
    assert found["accuracy"]["value"] == 3 / 5
    assert found["abstained"]["value"] == 1 / 5
    assert found["average_radius"]["value"] == pytest.approx((0.30 + 0.10 + 0.20) / 5)
    assert found["median_radius"] == 0.2
    curve = {point["radius"]: point for point in found["curve"]}
    for radius, k in ((0.0, 3), (0.08, 3), (0.1, 2), (0.18, 2), (0.2, 1), (0.28, 1), (0.3, 0)):
        assert curve[radius]["k"] == k
        assert curve[radius]["ci95"] == list(wilson(k, 5))
    assert curve[0.2]["rms"] == pytest.approx(0.2 / math.sqrt(DIMS))
    json.dumps(found, allow_nan=False)


def test_a_radius_counts_only_above_it_and_never_for_an_abstention(five):
    values = [point["value"] for point in describe_certificates(five)["curve"]]
    assert values == sorted(values, reverse=True)
    assert values[-1] == 0
    silent = [record for record in five if record["video"] == "silent"]
    found = describe_certificates(silent)
    assert all(point["k"] == 0 for point in found["curve"])
    assert found["average_radius"]["value"] == 0
    assert found["median_radius"] is None


def test_rates(five):
    assert "certificate" in definitions.facts_of(five)
    entry = definitions.evaluate("certified_accuracy", five)
    assert (entry["k"], entry["n"], entry["method"]) == (3, 5, "wilson")
    entry = definitions.evaluate("certified_abstention_rate", five)
    assert (entry["k"], entry["n"]) == (1, 5)


def test_summary_has_it_only_where_it_was_asked_for(five, manifest, ten_records):
    assert summarize(manifest, five)["certificate"]["n"] == 100
    assert "certificate" not in summarize(manifest, ten_records)
    assert describe_certificates(ten_records) is None


def test_videos_of_different_size_have_no_common_rms(five):
    five[0]["certificate"]["dims"] = 2 * DIMS
    found = describe_certificates(five)
    assert found["dims"] is None
    assert all(point["rms"] is None for point in found["curve"])


def test_table_columns(five):
    row = record_row(five[0], ("a", "b", "c"))
    assert (row["certified_class"], row["certified_radius"]) == (0, 0.30)
    assert record_row(five[3], ())["certified_class"] is None


@pytest.mark.golden
@pytest.mark.parametrize(
    ("n", "alpha", "in_sigmas"), [(100, 0.001, 1.5005), (1000, 0.001, 2.4633), (10, 0.05, 0.6468)]
)
def test_the_largest_radius_is_that_of_unanimous_draws(n, alpha, in_sigmas):
    assert largest_radius(0.25, n, alpha) / 0.25 == pytest.approx(in_sigmas, abs=1e-4)
    assert largest_radius(0.25, 9, 0.001) == 0.0


@pytest.mark.parametrize("largest", [0.0, 0.004, 0.15, 0.25, 0.6158, 1.0, 3.8115])
def test_the_grid_is_round_covers_everything_and_is_short(largest):
    grid = radius_grid(largest)
    assert grid[0] == 0.0
    assert grid[-1] >= largest
    assert len(grid) <= 21
    assert len(grid) > 8 or largest == 0
    assert all(len(f"{radius:g}") <= 6 for radius in grid)
