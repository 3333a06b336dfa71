"""Processes die at any moment; the records are those of a run that nobody disturbed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from vcr_core.atomic import to_json
from vcr_core.engine.flight import read_flight
from vcr_core.manifest import read_manifest
from vcr_core.record_schema import stable_part
from vcr_core.records import read_records
from vcr_core.testing.toys.shapes import ShapesDataset
from vcr_e2e.harness import alive, assert_complete, essence, only_run, wait_until

RUN = ("run", "experiment.toml", "--results", "results")
SLOW = {"VCR_E2E_DELAY": "0.3"}


def test_ten_kills_at_random_moments(start, reference):
    moments = random.Random(20)
    in_a_batch = 0
    for _ in range(10):
        life = start(*RUN, **SLOW)
        life.flight()
        try:
            life.process.wait(moments.uniform(0, 0.6))
        except subprocess.TimeoutExpired:
            life.signal(signal.SIGKILL)
        ended = life.end()
        if ended.code == 0:
            break
        in_a_batch += ended.code == -signal.SIGKILL
    assert in_a_batch >= 5, in_a_batch
    assert start(*RUN).end().code == 0
    folder = only_run(life.folder)
    assert read_manifest(folder)["status"] == "done"
    assert_complete(folder)
    assert essence(folder) == reference.records


def test_the_parent_of_workers_dies_and_they_with_it(start, reference):
    parent = start(*RUN, "--workers", "2", **SLOW)
    workers = [parent.flight(share)["pid"] for share in ("0of2", "1of2")]
    parent.signal(signal.SIGKILL)
    parent.end()
    wait_until(lambda: not any(alive(pid) for pid in workers))
    folder = only_run(parent.folder)
    before = read_records(folder)
    assert len(before) < 24
    again = start(*RUN, "--workers", "2").end()
    assert again.code == 0, again.err
    assert_complete(folder)
    assert essence(folder) == reference.records


def test_a_worker_dies_and_is_started_again(start, reference):
    parent = start(*RUN, "--workers", "2", **SLOW)
    flight = parent.flight("1of2")
    os.kill(flight["pid"], signal.SIGKILL)
    ended = parent.end()
    assert ended.code == 0, ended.err
    assert "worker 1of2 died (signal 9) in batch" in ended.err
    folder = only_run(parent.folder)
    assert_complete(folder)
    assert essence(folder) == reference.records


def test_videos_that_kill_their_worker_are_error_records(start, vcr):
    """Two in one batch of three: the third one, and all others, are evaluated as usual."""
    command = ("run", "experiment.toml", "--set", "runtime.batch_videos=3", "--limit", "9")
    assert vcr(*command, "--results", "usual").code == 0
    usual = {r["video"]: r for r in read_records(only_run(Path("usual")))}
    first = read_manifest(only_run(Path("usual")))["batches"][1]
    deadly = first[:2]
    trouble = {"VCR_E2E_TROUBLE": f"die {' '.join(deadly)}"}
    ended = start(*command, "--workers", "1", "--max-errors", "2", **trouble).end()
    assert ended.code == 0, ended.err
    folder = only_run(Path("results"))
    assert_complete(folder)
    for record in read_records(folder):
        if record["video"] in deadly:
            assert record["status"] == "error"
            assert record["error"]["stage"] == "worker"
            assert record["label"] == usual[record["video"]]["label"]
            assert "signal 9" in record["error"]["message"]
        elif record["video"] in first:
            # Stacked with fewer neighbours: the last bits may differ.
            assert record["attacked"]["pred"] == usual[record["video"]]["attacked"]["pred"]
        else:
            assert stable_part(record) == stable_part(usual[record["video"]])
    # Without the trouble --retry-errors makes the batch again, and only that.
    again = vcr("run", folder, "--retry-errors")
    assert again.code == 0
    assert essence(folder) == [to_json(stable_part(r)) for r in usual.values()]
    assert {r["batch"] for r in read_records(folder) if r["attempt"] == 2} == {1}


def test_two_deaths_at_one_batch_that_are_nobodys_fault(start, reference):
    """Its videos are tried one by one, and then done together as always."""
    parent = start(*RUN, "--workers", "1", **SLOW)
    seen: set[int] = set()
    for _ in range(2):
        flight = parent.wait_until(lambda: new_flight(parent.run, seen))
        assert flight["batch"] == 0
        seen.add(flight["pid"])
        os.kill(flight["pid"], signal.SIGKILL)
    ended = parent.end()
    assert ended.code == 0, ended.err
    folder = only_run(parent.folder)
    assert_complete(folder)
    assert essence(folder) == reference.records
    assert not list(folder.glob("logs/suspects*"))


def new_flight(folder: Path, seen: set[int]) -> Any:
    found = read_flight(folder, "0of1")
    return found if found and found["stage"] == "attack" and found["pid"] not in seen else None


def test_a_batch_that_kills_only_together_is_done_apart(start):
    video = read_manifest(Path(start(*RUN, "--plan").end().out.strip()))["batches"][1][0]
    trouble = {"VCR_E2E_TROUBLE": f"die-together {video}"}
    ended = start(*RUN, "--workers", "1", **trouble).end()
    assert ended.code == 0, ended.err
    records = read_records(only_run(Path("results")))
    assert {record["status"] for record in records} == {"ok"}
    apart = {r["batch"] for r in records if any("apart" in n for n in r.get("notes", []))}
    assert apart == {1}


def test_a_worker_that_never_starts_is_given_up(vcr, monkeypatch, here):
    """An interpreter that ends at once: no endless restarts, and the log's words in the message."""
    site = here / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import sys\nif '--worker' in sys.argv:\n    sys.exit('no room for this worker')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    ended = vcr("run", "experiment.toml", "--workers", "1")
    assert ended.code == 1
    assert "died 3 times" in ended.err
    assert "no room for this worker" in ended.err


def test_a_component_that_prints_does_not_block_its_worker(start):
    """More than a pipe holds."""
    trouble = {"VCR_E2E_TROUBLE": f"print {' '.join(ShapesDataset().ids())}"}
    ended = start(*RUN, "--workers", "1", "--limit", "4", "--json", **trouble).end()
    assert ended.code == 0, ended.err
    assert ended.json["status"] == "done"
    (log,) = only_run(Path("results")).glob("logs/worker-0of1.log")
    assert log.read_text().count("printed by a component") >= 10_000


@pytest.mark.slow
def test_a_worker_held_by_native_code_is_given_up(start):
    """Killed from outside 30 seconds after its limit, three times."""
    video = read_manifest(Path(start(*RUN, "--plan").end().out.strip()))["batches"][1][0]
    ended = start(
        *RUN, "--workers", "1", "--max-errors", "1", "--set", "runtime.video_time_limit_s=2",
        VCR_E2E_TROUBLE=f"hang-in-native-code {video}",
    ).end(patience=280)  # fmt: skip
    assert ended.code == 0, ended.err
    (failed,) = [r for r in read_records(only_run(Path("results"))) if r["status"] == "error"]
    assert failed["video"] == video
