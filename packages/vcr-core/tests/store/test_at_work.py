from __future__ import annotations

import json
import os
import platform
import subprocess
import sys

import pytest
from vcr_core.at_work import SILENT_S, workers

NOW = 1_800_000_000.0


@pytest.fixture
def flight(tmp_path):
    """Write what a worker says of itself; a value of ``None`` leaves the field out."""

    def write(share="0of1", **changes):
        said = {
            "batch": 3, "stage": "attack", "videos": ["a", "b"], "pid": os.getpid(),
            "since": NOW - 90, **changes,
        }  # fmt: skip
        (tmp_path / "logs").mkdir(exist_ok=True)
        path = tmp_path / "logs" / f"flight-{share}.json"
        path.write_text(json.dumps({k: v for k, v in said.items() if v is not None}))

    return write


def gone():
    """Return the id of a process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_no_logs_no_workers(tmp_path):
    assert workers(tmp_path, now=NOW) == ()


def test_what_a_worker_says(tmp_path, flight):
    flight("1of4", host=platform.node())
    (worker,) = workers(tmp_path, now=NOW)
    assert (worker.share, worker.batch, worker.stage) == ("1of4", 3, "attack")
    assert (worker.videos, worker.since_s, worker.host) == (2, 90, platform.node())


@pytest.mark.skipif(os.name == "nt", reason="processes cannot be asked for there")
def test_a_dead_process_of_this_machine_does_not_count(tmp_path, flight):
    flight(host=platform.node(), pid=gone())
    assert workers(tmp_path, now=NOW) == ()


def test_a_process_elsewhere_counts_until_it_is_silent_for_long(tmp_path, flight):
    flight(host="elsewhere", pid=1)
    assert [worker.host for worker in workers(tmp_path, now=NOW)] == ["elsewhere"]
    flight(host="elsewhere", pid=1, since=NOW - SILENT_S - 1)
    assert workers(tmp_path, now=NOW) == ()


@pytest.mark.skipif(os.name == "nt", reason="processes cannot be asked for there")
def test_a_process_that_names_no_machine_may_be_here_or_elsewhere(tmp_path, flight):
    flight("0of2", since=NOW - 2 * SILENT_S)  # alive, here
    flight("1of2", since=NOW - 2 * SILENT_S, pid=gone())
    assert [worker.share for worker in workers(tmp_path, now=NOW)] == ["0of2"]
    flight("1of2", since=NOW - 60, pid=gone())
    assert [worker.host for worker in workers(tmp_path, now=NOW)] == [None, None]


def test_a_clock_that_is_ahead_is_no_negative_time(tmp_path, flight):
    flight(since=NOW + 500)
    (worker,) = workers(tmp_path, now=NOW)
    assert worker.since_s == 0


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"pid": "x"}', '{"pid": 1, "since": {}}'])
def test_a_file_that_says_nothing_is_passed_over(tmp_path, text):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "flight-0of1.json").write_text(text)
    (tmp_path / "logs" / "flight-0of1.new").write_text("{}")
    assert workers(tmp_path, now=NOW) == ()
