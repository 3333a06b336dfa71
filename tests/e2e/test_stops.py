"""Ctrl-C and SIGTERM: the batch in hand is finished, the way on is printed, the code is 130."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from vcr_core.manifest import read_manifest
from vcr_core.records import read_records
from vcr_e2e.harness import alive, assert_complete, essence, flying, only_run, wait_until

RUN = ("run", "experiment.toml", "--results", "results")
SLOW = {"VCR_E2E_DELAY": "0.5"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_once_finishes_the_batch(start, vcr, reference, number):
    process = start(*RUN, **SLOW)
    batch = process.flight()["batch"]
    process.signal(number)
    ended = process.end()
    assert ended.code == 130, ended.err
    folder = only_run(Path("results"))
    command = f"vcr run {folder}"
    assert f"go on with: {command}\n" in ended.err
    assert "stopping after the batch in hand" in ended.err
    assert "Traceback" not in ended.err
    records = read_records(folder)
    assert batch in {record["batch"] for record in records}
    assert len(records) < 24
    assert read_manifest(folder)["status"] == "interrupted"
    assert not list(folder.glob("logs/flight*"))
    again = vcr(*command.split()[1:])
    assert again.code == 0
    assert_complete(folder)
    assert essence(folder) == reference.records


def test_twice_stops_now(start):
    process = start(*RUN, VCR_E2E_DELAY="600")
    process.flight()
    process.signal(signal.SIGINT)
    assert "stopping after the batch" in process.process.stderr.readline()
    process.signal(signal.SIGINT)
    ended = process.end()
    assert ended.code == 130
    assert "Traceback" not in ended.err
    folder = only_run(Path("results"))
    assert read_records(folder) == []
    assert read_manifest(folder)["status"] == "interrupted"


def test_workers_finish_their_batches(start, reference):
    process = start(*RUN, "--workers", "2", **SLOW)
    batches = {process.flight(share)["batch"] for share in ("0of2", "1of2")}
    process.signal(signal.SIGINT)
    ended = process.end()
    assert ended.code == 130, ended.err
    folder = only_run(Path("results"))
    assert f"go on with: vcr run {folder}\n" in ended.err
    records = read_records(folder)
    assert batches <= {record["batch"] for record in records}
    assert len(records) < 24
    expected = [r for r in reference.records if any(f'"{x["video"]}"' in r for x in records)]
    assert essence(folder) == expected


def test_twice_stops_workers_now(start):
    process = start(*RUN, "--workers", "2", VCR_E2E_DELAY="600")
    workers = [process.flight(share)["pid"] for share in ("0of2", "1of2")]
    process.signal(signal.SIGINT)
    assert "stopping after the batch" in process.process.stderr.readline()
    process.signal(signal.SIGINT)
    ended = process.end()
    assert ended.code == 130
    assert "Traceback" not in ended.err
    wait_until(lambda: not any(alive(pid) for pid in workers))
    assert read_records(only_run(Path("results"))) == []


def test_a_share_says_how_to_go_on(start, vcr):
    folder = vcr(*RUN, "--plan").out.strip()
    process = start("run", folder, "--shard", "1/2", **SLOW)
    process.flight("1of2")
    process.signal(signal.SIGTERM)
    ended = process.end()
    assert ended.code == 130
    assert f"go on with: vcr run {folder} --shard 1/2\n" in ended.err


def test_a_sweep_stops_as_a_whole(start, vcr):
    Path("sweep.toml").write_text(
        Path("experiment.toml").read_text() + '\n[matrix]\n"threat.eps" = ["2/255", "4/255"]\n'
    )
    process = start("sweep", "sweep.toml", "--results", "results", **SLOW)
    process.wait_until(lambda: flying("results", "0of1"))
    process.signal(signal.SIGINT)
    ended = process.end()
    assert ended.code == 130
    assert "the same command goes on with the sweep" in ended.err
    states = sorted(read_manifest(p.parent)["status"] for p in Path("results").glob("*/run.json"))
    assert states == ["interrupted", "planned"]
    assert vcr("sweep", "sweep.toml", "--results", "results").code == 0
    for run in Path("results").glob("*/run.json"):
        assert_complete(run.parent)
