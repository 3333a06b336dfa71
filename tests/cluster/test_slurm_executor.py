"""Sweeps on a Slurm cluster whose parts are killed: nothing is lost, nothing is done twice."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from vcr_core.manifest import read_manifest
from vcr_core.testing.contract import cases
from vcr_e2e.harness import alive, flying, parent_of, sweep_records, written

pytest.importorskip("submitit")

SWEEP = '\n[matrix]\n"threat.eps" = ["2/255", "4/255"]\n'
COMMAND = ("sweep", "sweep.toml", "--limit", "8")
SLURM = (
    *COMMAND, "--results", "slurm",
    "--set", "executor.name=slurm", "--set", "executor.workers=2", "--set", "executor.time=5",
    "--set", "executor.partition=main",
)  # fmt: skip
SLOW = {"VCR_E2E_DELAY": "0.5"}
"""For every attack, of which there are eight: a lane takes two seconds and more."""


@pytest.fixture
def sweep(here: Path, vcr) -> dict[str, list[str]]:
    """A sweep file, and the records of its runs when they are made in this process."""
    (here / "sweep.toml").write_text((here / "experiment.toml").read_text() + SWEEP)
    assert vcr(*COMMAND, "--results", "inline").code == 0
    return sweep_records("inline")


@pytest.fixture
def submitted(slurm, start, sweep):
    """A sweep on the cluster, with a lane in the middle of an attack."""
    process = start(*SLURM, results="slurm", **SLOW)
    process.wait_until(lambda: flying("slurm", "1of2"))
    return process


def assert_whole(process, sweep, patience: float = 120) -> str:
    done = process.end(patience)
    assert done.code == 0, done.err
    assert sweep_records("slurm") == sweep
    assert {read_manifest(p.parent)["status"] for p in Path("slurm").glob("*/run.json")} == {"done"}
    return done.err


def test_a_worker_dies(submitted, sweep):
    os.kill(flying("slurm", "1of2")["pid"], signal.SIGKILL)
    assert_whole(submitted, sweep)


def test_a_job_dies(submitted, sweep, slurm):
    """Its worker goes with it, and the lane is submitted again."""
    worker = flying("slurm", "1of2")["pid"]
    os.kill(parent_of(worker), signal.SIGKILL)
    assert "worker 1of2 died (its Slurm job is gone)" in assert_whole(submitted, sweep)
    assert not alive(worker)
    assert len([job for job in slurm.jobs() if job.name == "vcr"]) >= 3


def test_the_node_is_lost_and_comes_back(submitted, sweep, slurm):
    slurm.kill_node(steps=True)
    slurm.set_node_state("down")
    slurm.set_node_state("resume")
    slurm.start_node()
    assert_whole(submitted, sweep)


@pytest.mark.slow
def test_the_controller_forgets_the_jobs(submitted, sweep, slurm):
    """It is killed before it has written them down; they run on beside those made anew.

    Slurm then gives their numbers to new jobs, which the node may refuse for a while: whoever comes
    after this test has to wait.
    """
    slurm.kill_controller()
    before = written("slurm")
    submitted.wait_until(lambda: written("slurm") > before)
    slurm.start_controller()
    assert_whole(submitted, sweep)


def test_jobs_end_while_the_controller_is_away(submitted, sweep, slurm):
    """It takes them for running long afterwards; what they have posted counts."""
    slurm.stop_controller()
    submitted.wait_until(lambda: written("slurm") == sum(map(len, sweep.values())))
    slurm.start_controller()
    assert_whole(submitted, sweep, patience=60)


def test_jobs_are_pushed_out(submitted, sweep, slurm):
    slurm.preempt(2)
    assert_whole(submitted, sweep)


def test_the_command_dies_and_the_jobs_go_on(submitted, sweep, start, slurm):
    """The same command joins in: what the old jobs have in hand is left to them."""
    submitted.signal(signal.SIGKILL)
    submitted.end()
    before = written("slurm")
    slurm.wait_until(lambda: written("slurm") > before, "the jobs went on")
    assert_whole(start(*SLURM, results="slurm", **SLOW), sweep)


def test_interrupted_there_and_finished_here(slurm, start, sweep, vcr):
    process = start(*SLURM, results="slurm", VCR_E2E_DELAY="2")
    process.wait_until(lambda: flying("slurm", "1of2"))
    process.signal(signal.SIGINT)
    assert process.end().code == 130, process.done
    assert all(job.over for job in slurm.jobs())
    assert 0 < written("slurm") < sum(map(len, sweep.values()))
    assert vcr(*COMMAND, "--results", "slurm").code == 0
    assert sweep_records("slurm") == sweep


def test_a_script_for_the_site(slurm, start, sweep, vcr):
    """Pushed out once; the script says itself that it is to be queued again."""
    made = start(*SLURM, "--emit-slurm", "job.sh").end()
    assert (made.code, made.out) == (0, "job.sh\n"), made.err
    environment = {**os.environ, **SLOW}
    job = subprocess.run(
        ["sbatch", "--parsable", "job.sh"], env=environment, capture_output=True, text=True,
        check=True,
    ).stdout.strip()  # fmt: skip
    slurm.wait_until(lambda: flying("slurm", "1of2"), "a share is in an attack")
    slurm.preempt(1)
    for share in (f"{job}_0", f"{job}_1"):
        slurm.wait_state(share, "COMPLETED")
    assert sweep_records("slurm") == sweep
    assert vcr("status", "slurm").out.count("8/8") == 2
    again = start(*SLURM, "--emit-slurm", "again.sh").end()
    assert again.code == 2
    assert "nothing to submit" in again.err


def test_a_job_that_slurm_refuses(slurm, start, sweep):
    done = start(*SLURM, "--set", "executor.partition=nowhere").end()
    assert done.code == 3
    assert "Slurm refused the job" in done.err
    assert "partition" in done.err.lower()


@pytest.mark.slow
def test_the_time_is_up(slurm, start, sweep):
    """A minute does not suffice; the lane is queued again until it is through."""
    slow = {"VCR_E2E_DELAY": "20"}
    limits = ("--set", "executor.time=1", "--set", "executor.warning_s=20")
    process = start(*SLURM, *limits, results="slurm", **slow)
    assert "is gone" not in assert_whole(process, sweep, patience=220)
    assert any(slurm.job(job.id)["Restarts"] != "0" for job in slurm.jobs())


CONTRACT = [
    case
    for case in cases("vcr-core", params={"executor/slurm": {"partition": "main", "time": 5}})
    if case.subject.ref == "slurm"
]


@pytest.mark.parametrize("check", CONTRACT, ids=lambda case: case.id)
def test_contract(slurm, check):
    check()
