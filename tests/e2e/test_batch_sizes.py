"""How videos are batched may change last bits and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from vcr_core.records import read_records
from vcr_e2e.harness import only_run


# Not an attack that takes the sign of a gradient: where the gradient of a flat background is zero
# but for rounding, its sign is an accident that a few steps make visible.
@pytest.mark.parametrize("limit", [1, 7, 24])
@pytest.mark.parametrize(
    ("attack", "defense"),
    [("none", "none"), ("toy-grain", "none"), ("toy-search", "none"), ("toy-search", "toy-noise"),
     ("toy-search", "toy-quantise")],
)  # fmt: skip
def test_predictions_and_rates_do_not_depend_on_it(vcr, limit, attack, defense):
    found = {}
    for size in (1, 3, 8):
        command = ("run", "experiment.toml", "--limit", str(limit), "--attack", attack,
                   "--defense", defense)  # fmt: skip
        done = vcr(*command, "--set", f"runtime.batch_videos={size}", "--results", str(size),
                   "--json")  # fmt: skip
        assert done.code == 0, done.err
        rates = {
            name: (rate["value"], rate["k"], rate["n"])
            for name, rate in done.json["summary"]["definitions"].items()
        }
        records = {r["video"]: r for r in read_records(only_run(Path(str(size))))}
        found[size] = (rates, records)
    rates, records = found.pop(1)
    assert len(records) == limit
    for other_rates, others in found.values():
        assert other_rates == rates
        for video, record in records.items():
            other = others[video]
            assert other["status"] == record["status"]
            assert other["cost"]["forwards"] == record["cost"]["forwards"]
            for one, two in zip(corners(record), corners(other), strict=True):
                assert two["pred"] == one["pred"]
                assert two["p_label"] == pytest.approx(one["p_label"], abs=1e-5)


def corners(record: dict) -> list[dict]:
    listed = []
    for name in ("clean", "clean_defended", "attacked", "attacked_defended"):
        found = record.get(name, [])
        listed += found if isinstance(found, list) else [found]
    return listed
