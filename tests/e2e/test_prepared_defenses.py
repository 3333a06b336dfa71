"""Defenses with an offline step: refused without it, made once, checked, named in the records."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from vcr_core.records import read_records
from vcr_e2e.harness import only_run

DETECT = (
    "--model", "toy-cnn", "--dataset", "toy-shapes", "--attack", "toy-descent", "--limit", "6",
    "--defense", "feature-squeezing", "--set", "defense.means_window=0",
    "--set", "defense.median=0", "--set", "defense.bits=3", "--set", "prepare.videos=6",
)  # fmt: skip


@pytest.fixture(autouse=True)
def cache(here, monkeypatch) -> Path:
    monkeypatch.setenv("VCR_CACHE_DIR", str(here / "cache"))
    return here / "cache"


def test_refused_then_made_by_the_printed_line_then_used(vcr, here):
    refused = vcr("run", *DETECT)
    assert refused.code != 0
    assert "defense feature-squeezing needs an artifact" in refused.err
    assert not (here / "results").exists() or not list((here / "results").iterdir())
    (line,) = [x.strip() for x in refused.err.splitlines() if x.strip().startswith("vcr prepare")]
    made = vcr(*shlex.split(line)[1:], "--json")
    assert made.code == 0, made.err
    [artifact] = made.json["artifacts"]
    assert artifact["made"] is True
    assert artifact["manifest"]["defense"] == "feature-squeezing"
    evaluated = {r["video"] for r in self_records(vcr, here)}
    assert not evaluated & {video["id"] for video in artifact["manifest"]["videos"]}
    for record in read_records(only_run(here / "results")):
        assert record["defense_artifacts"] == [artifact["sha256"]]
        assert "leak" not in record["flags"]
        corner = record["clean_defended"]
        threshold = json.loads((Path(artifact["folder"]) / "threshold.json").read_text())
        assert corner["rejected"] == (corner["score"] > threshold["threshold"])


def self_records(vcr, here):
    done = vcr("run", *DETECT)
    assert done.code == 0, done.err
    return read_records(only_run(here / "results"))


def test_a_reference_names_the_defense(vcr):
    rest = [part for part in DETECT if part not in ("--defense", "feature-squeezing")]
    assert vcr("prepare", "feature-squeezing", *rest).code == 0
    twice = vcr("prepare", "feature-squeezing", *DETECT)
    assert twice.code == 2
    assert "two defenses are named" in twice.err


def test_training_on_evaluated_videos_is_flagged(vcr, here):
    all_of_it = [*DETECT, "--set", "dataset.limit=24", "--set", "prepare.allow_overlap=true"]
    assert vcr("prepare", *all_of_it).code == 0
    assert vcr("run", *all_of_it).code == 0
    flagged = [r for r in read_records(only_run(here / "results")) if "leak" in r["flags"]]
    assert len(flagged) == 6


def test_a_changed_artifact_is_refused(vcr, cache):
    assert vcr("prepare", *DETECT).code == 0
    [path] = cache.rglob("threshold.json")
    path.write_text(path.read_text().replace("0", "1", 1))
    refused = vcr("run", *DETECT)
    assert refused.code != 0
    assert "is not the one that was written" in refused.err


def test_a_defense_is_prepared_before_the_attack_that_sees_it(vcr):
    both = [*DETECT, "--set", "attack.name=toy-universal"]
    made = vcr("prepare", *both, "--json")
    assert made.code == 0, made.err
    first, second = made.json["artifacts"]
    assert first["manifest"]["defense"] == "feature-squeezing"
    assert second["manifest"]["attack"] == "toy-universal"
    assert vcr("run", *both).code == 0
