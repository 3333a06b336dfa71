"""Retention by the share of sampled frames in the changed segment."""

from __future__ import annotations

import pytest
from vcr_core import stats
from vcr_core.tamper_robustness import overlap_curve


def record(overlap, before, after, **more):
    return {
        "video": "v", "status": "ok", "label": 0, "clean": {"pred": 1 - before},
        "attacked": {"pred": 1 - after}, "transform": {"overlap": overlap}, **more,
    }  # fmt: skip


def test_five_bins_by_hand():
    records = [
        record(0.0, 1, 1),
        record(0.19, 1, 1),
        record(0.1, 0, 1),  # wrong before: no part of retention
        record(0.2, 1, 0),  # a border belongs to the bin above
        record(0.35, 1, 1),
        record(0.5, 0, 0),
        record(1.0, 1, 0),
        record(0.9, 1, 1),
        record(0.8, 1, 0),
    ]
    curve = overlap_curve(records)
    assert [(b["low"], b["high"]) for b in curve] == [
        (0.0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.0),
    ]  # fmt: skip
    assert [b["videos"] for b in curve] == [3, 2, 1, 0, 3]
    assert [b["retention"]["value"] for b in curve] == [1.0, 0.5, None, None, pytest.approx(1 / 3)]
    assert [b["retention"]["n"] for b in curve] == [2, 2, 0, 0, 3]
    assert curve[4]["overlap"] == pytest.approx(0.9)
    assert curve[3]["overlap"] is None
    assert curve[0]["retention"]["ci95"] == list(stats.wilson(2, 2))
    assert curve[2]["retention"]["reason"] == "no right prediction before"
    assert curve[3]["retention"]["reason"].startswith("no video has so much")


def test_draws_are_parts_of_a_video():
    drawn = record(
        0.5, 1, 1, clean_defended=[{"pred": 0}, {"pred": 0}],
        attacked_defended=[{"pred": 0}, {"pred": 1}],
    )  # fmt: skip
    curve = overlap_curve([drawn], defended=True)
    assert curve[2]["retention"]["value"] == 0.5
    assert curve[2]["retention"]["method"] == "bootstrap"


def test_runs_without_overlap_have_no_curve():
    assert overlap_curve([{**record(0.5, 1, 1), "transform": {}}]) is None
    assert overlap_curve([{**record(0.5, 1, 1), "status": "error"}]) is None
