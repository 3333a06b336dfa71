"""What the end-to-end tests share: processes, conditions, comparisons."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from vcr_core.atomic import to_json
from vcr_core.engine.flight import read_flight
from vcr_core.manifest import planned_videos, read_manifest
from vcr_core.record_schema import stable_part
from vcr_core.records import check_complete, raw_records, read_records

PATIENCE_S = 120.0

EXPERIMENT = """\
schema = 1

[dataset]
name = "toy-shapes"

[model]
name = "toy-cnn"

[attack]
name = "moody"

[defense]
name = "toy-noise"

[threat]
eps = "4/255"

[protocol]
eval_repeats = 2

[metrics]
names = ["mse", "toy-difference"]

[runtime]
device = "cpu"
threads = 1
batch_videos = 2
"""
"""24 videos in 12 batches; attack and defense are random in their own right."""


@dataclass
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Process:
    """``vcr`` as a process of its own."""

    process: subprocess.Popen[str]
    folder: Path
    done: Done | None = None

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self, patience: float = PATIENCE_S) -> Done:
        """Wait for the end and return what came out."""
        if self.done is None:
            out, err = self.process.communicate(timeout=patience)
            self.done = Done(self.process.returncode, out, err)
        return self.done

    def wait_until(self, condition: Callable[[], Any]) -> Any:
        """Return the first true value of ``condition`` while the process lives."""
        return wait_until(condition, self.process)

    @property
    def run(self) -> Path:
        """The run folder, once it exists."""
        found = self.wait_until(lambda: [p.parent for p in self.folder.glob("*/run.json")])
        return Path(found[0])

    def flight(self, share: str = "0of1", stage: str = "attack") -> dict[str, Any]:
        """Wait until a process of this run is in a stage of a batch, and return which."""
        run = self.run
        own = self.process.pid if share == "0of1" else None

        def flying() -> Any:
            found = read_flight(run, share)
            if found and found["stage"] == stage and alive(found["pid"]):
                return found if own in (None, found["pid"]) else None
            return None

        return dict(self.wait_until(flying))


def wait_until(condition: Callable[[], Any], process: subprocess.Popen[str] | None = None) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = condition()
        if found:
            return found
        if process is not None and process.poll() is not None:
            out, err = process.communicate()
            pytest.fail(f"the process ended with {process.returncode}:\n{out}\n{err}")
        if time.monotonic() > deadline:
            pytest.fail("nothing happened")
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Return whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def essence(folder: Path) -> list[str]:
    """Return every record as JSON, without times, host, shard and attempt."""
    return [to_json(stable_part(record)) for record in read_records(folder)]


def sweep_records(results: str) -> dict[str, list[str]]:
    """Return the essence of every run of a sweep by name, all of them complete."""
    folders = sorted(path.parent for path in Path(results).glob("*/run.json"))
    for folder in folders:
        assert_complete(folder)
    return {folder.name: essence(folder) for folder in folders}


def flying(results: str, share: str) -> dict[str, Any] | None:
    """Return what a worker of this share has in hand in its attack, in any run of a sweep."""
    for path in sorted(Path(results).glob("*/run.json")):
        found = read_flight(path.parent, share)
        if found and found["stage"] == "attack" and alive(found["pid"]):
            return found
    return None


def written(results: str) -> int:
    """Return how many videos of a sweep have a record."""
    return sum(len(read_records(path.parent)) for path in Path(results).glob("*/run.json"))


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def only_run(results: Path) -> Path:
    (found,) = results.glob("*/run.json")
    return found.parent


def assert_complete(folder: Path) -> None:
    """Every planned video is there, once, and no file has a damaged line."""
    manifest = read_manifest(folder)
    coverage = check_complete(raw_records(folder), manifest["batches"])
    assert coverage.ok, coverage
    assert len(read_records(folder)) == len(planned_videos(manifest))


@dataclass
class Reference:
    """The experiment as it goes when nobody disturbs it."""

    folder: Path
    records: list[str] = field(default_factory=list)
