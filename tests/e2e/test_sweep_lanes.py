"""A sweep by several workers: each goes through all runs, and nothing is done twice."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from vcr_core.engine import model_shelf
from vcr_core.executors.lanes import work_through
from vcr_core.manifest import read_manifest
from vcr_core.protocols import ShardTask
from vcr_core.records import raw_records, read_records
from vcr_e2e.harness import alive, flying, sweep_records, wait_until, written

SWEEP = '\n[matrix]\n"threat.eps" = ["2/255", "4/255"]\nattack = ["none", "moody"]\n'
SLOW = {"VCR_E2E_DELAY": "0.3"}


@pytest.fixture
def sweep(here: Path, vcr) -> dict[str, list[str]]:
    """A sweep file, and the records of its runs when they are made in this process."""
    (here / "sweep.toml").write_text((here / "experiment.toml").read_text() + SWEEP)
    assert vcr("sweep", "sweep.toml", "--results", "inline").code == 0
    return sweep_records("inline")


def test_two_workers(start, sweep):
    done = start("sweep", "sweep.toml", "--results", "two", "--workers", "2").end()
    assert done.code == 0, done.err
    assert sweep_records("two") == sweep
    # One process a lane, in all runs.
    writers = {path.name for path in Path("two").glob("*/records/*.jsonl")}
    assert len(writers) == 2
    assert {read_manifest(p.parent)["status"] for p in Path("two").glob("*/run.json")} == {"done"}
    assert len(list(Path("two").glob("*/summary.json"))) == len(sweep)


def test_a_model_is_loaded_once(vcr, sweep, monkeypatch):
    """In this process, and by whoever goes through a lane."""
    built = []
    build = model_shelf.build

    def counted(chosen, folders):
        built.append(chosen.ref)
        return build(chosen, folders)

    monkeypatch.setattr(model_shelf, "build", counted)
    assert vcr("sweep", "sweep.toml", "--results", "again").code == 0
    assert built == ["toy-cnn"]
    assert sweep_records("again") == sweep
    planned = vcr("sweep", "sweep.toml", "--results", "lane", "--plan").out.split()
    built.clear()
    list(work_through([ShardTask(Path(folder), 0, 1) for folder in planned]))
    assert built == ["toy-cnn"]
    assert sweep_records("lane") == sweep


def test_a_worker_that_dies_goes_on_where_it_was(start, sweep):
    parent = start(
        "sweep", "sweep.toml", "--results", "two", "--workers", "2", results="two", **SLOW
    )
    flight = parent.wait_until(lambda: flying("two", "1of2"))
    os.kill(flight["pid"], signal.SIGKILL)
    done = parent.end()
    assert done.code == 0, done.err
    assert "worker 1of2 died (signal 9)" in done.err
    assert sweep_records("two") == sweep


def test_the_same_command_twice_shares_the_work(start, sweep):
    """Two processes that know nothing of each other; every video is recorded once."""
    one = start("sweep", "sweep.toml", "--results", "both", results="both", **SLOW)
    one.wait_until(lambda: flying("both", "0of1"))
    two = start("sweep", "sweep.toml", "--results", "both", "--workers", "2", **SLOW)
    assert two.end().code == one.end().code == 0, (one.done, two.done)
    assert sweep_records("both") == sweep
    writers = {path.name.partition("-0of1-")[0] for path in Path("both").glob("*/records/*.jsonl")}
    assert len(writers) > 1


def test_a_batch_in_other_hands_is_waited_for(start, sweep):
    """The one who has it dies, and the other one does it then."""
    owner = start("sweep", "sweep.toml", "--results", "both", results="both", VCR_E2E_DELAY="600")
    flight = owner.wait_until(lambda: flying("both", "0of1"))
    other = start("sweep", "sweep.toml", "--results", "both", "--workers", "1")
    total = sum(map(len, sweep.values()))
    wait_until(lambda: written("both") == total - len(flight["videos"]), other.process)
    assert alive(other.process.pid)
    owner.signal(signal.SIGKILL)
    assert other.end().code == 0, other.done
    assert sweep_records("both") == sweep


def test_shares_of_all_runs_for_any_scheduler(vcr, sweep):
    planned = vcr("sweep", "sweep.toml", "--results", "shares", "--plan")
    folders = planned.out.split()
    assert len(folders) == len(sweep)
    assert {read_manifest(folder)["status"] for folder in folders} == {"planned"}
    for share in ("0/3", "1/3", "2/3"):
        done = vcr("run", *folders, "--shard", share)
        assert (done.code, done.out) == (0, ""), done.err
    assert sweep_records("shares") == sweep
    Path("shares", "report.html").touch()
    Path("shares", "slurm").mkdir()
    everything = sorted(str(path) for path in Path("shares").iterdir())
    done = vcr("run", *everything, "--json")
    assert done.code == 0
    assert sorted(run["run"] for run in done.json["runs"]) == sorted(sweep)
    gone = vcr("run", *everything, "shares/gone")
    assert gone.code == 2
    assert "shares/gone does not exist" in gone.err


def test_begun_by_one_executor_and_finished_by_another(start, sweep):
    """Interrupted in this process, continued by workers, finished in this process."""
    first = start("sweep", "sweep.toml", "--results", "mixed", results="mixed", **SLOW)
    first.wait_until(lambda: written("mixed") > 4)
    first.signal(signal.SIGINT)
    assert first.end().code == 130
    second = start("sweep", "sweep.toml", "--results", "mixed", "--workers", "2", **SLOW)
    before = written("mixed")
    second.wait_until(lambda: written("mixed") > before + 8)
    second.signal(signal.SIGINT)
    assert second.end().code == 130, second.done
    assert start("sweep", "sweep.toml", "--results", "mixed").end().code == 0
    assert sweep_records("mixed") == sweep


def test_a_run_that_cannot_be_set_up_costs_itself_only(vcr, sweep):
    """One whose model is gone by then fails, and the lane goes on."""
    planned = [Path(name) for name in vcr("sweep", "sweep.toml", "--plan").out.split()]
    broken = planned[1] / "resolved.toml"
    broken.write_text(broken.read_text().replace("toy-cnn", "toy-gone"))
    statuses = list(work_through([ShardTask(folder, 0, 1) for folder in planned]))
    assert [status.ok for status in statuses] == [True, False, *[True] * (len(planned) - 2)]
    assert "toy-gone" in statuses[1].message


def test_retried_errors_are_retried_once_also_by_workers_that_die(start, vcr, here):
    """A worker that is started again does not do again what it has done."""
    video = "east/disc"
    trouble = {"VCR_E2E_TROUBLE": f"raise {video}"}
    command = ("run", "experiment.toml", "--max-errors", "24", "--workers", "1")
    assert start(*command, **trouble).end().code == 0
    (folder,) = (path.parent for path in Path("results").glob("*/run.json"))
    process = start(*command, "--retry-errors", **trouble, **SLOW)
    flight = process.wait_until(lambda: flying("results", "0of1"))
    os.kill(flight["pid"], signal.SIGKILL)
    assert process.end().code == 0, process.done
    attempts = [r["attempt"] for r in raw_records(folder) if r["video"] == video]
    assert attempts == [1, 2]
    assert json.dumps([r["status"] for r in read_records(folder)]).count("error") == 1
