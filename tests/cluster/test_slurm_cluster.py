"""The cluster for tests does what a real one does to jobs.

What is asserted here is what an executor has to live with, so a test that fails on another version
of Slurm tells what to look at.
"""

from __future__ import annotations

import operator
import os
import subprocess
import time
from pathlib import Path

import pytest
from vcr_cluster.configuration import Settings
from vcr_cluster.slurm import ClusterError, SlurmCluster

LONG = "600"
"""Seconds; a job that lasts this long is ended by something else than its end."""

TELL = """\
import os, signal, sys, time
def tell(what):
    os.write(1, f"{what}\\n".encode())
def end(number, frame):
    tell("SIGTERM")
    os._exit(143)
signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGUSR2, lambda number, frame: tell("SIGUSR2"))
tell("start " + os.environ.get("SLURM_RESTART_COUNT", "0"))
time.sleep(float(sys.argv[1]))
tell("end")
"""


class Teller:
    """A job that writes down its starts, its end and the signals that it gets in between."""

    def __init__(self, slurm: SlurmCluster, folder: Path) -> None:
        self.slurm = slurm
        self.out = folder / "told.txt"
        self.program = folder / "tell.py"
        self.program.write_text(TELL)

    def submit(self, *options: str, step: bool = True) -> str:
        """Submit it, as a step of the job or as the job's script itself, and wait for its start."""
        script = f"exec {'srun --unbuffered ' if step else ''}python3 {self.program} {LONG}"
        output = ("--output", str(self.out), "--open-mode=append")
        job = self.slurm.submit(script, *output, *options)
        self.slurm.wait_until(lambda: "start 0" in self.told(), "the job started")
        return job

    def told(self) -> list[str]:
        """Return its lines, without those of Slurm."""
        lines = self.out.read_text().splitlines() if self.out.exists() else []
        return [line for line in lines if line.startswith(("start", "end", "SIG"))]


@pytest.fixture
def teller(slurm: SlurmCluster, tmp_path: Path) -> Teller:
    return Teller(slurm, tmp_path)


# -- jobs ----------------------------------------------------------------------------------------


def test_a_job_runs_and_ends(slurm, tmp_path):
    out = tmp_path / "out.txt"
    good = slurm.submit('echo "$SLURM_JOB_ID $PWD"', "--output", str(out), "--chdir", str(tmp_path))
    bad = slurm.submit("exit 3", "--output", "/dev/null")
    slurm.wait_idle()
    assert out.read_text() == f"{good} {tmp_path}\n"
    assert slurm.job(good)["JobState"] == "COMPLETED"
    assert slurm.job(bad)["JobState"] == "FAILED"
    assert slurm.job(bad)["ExitCode"] == "3:0"
    states = {job.id: job.state for job in slurm.jobs()}
    assert states[good] == "COMPLETED"
    assert states[bad] == "FAILED"


def test_elements_of_an_array_run_at_the_same_time(slurm, tmp_path):
    """Whatever the number of processors of the machine; each waits here for all others."""
    script = f"touch {tmp_path}/$SLURM_ARRAY_TASK_ID\n" + "\n".join(
        f"until [ -e {tmp_path}/{k} ]; do sleep 0.05; done" for k in range(3)
    )
    array = slurm.submit(script, "--array=0-2", "--output", "/dev/null")
    slurm.wait_idle()
    states = {job.id: job.state for job in slurm.jobs()}
    assert [states[f"{array}_{k}"] for k in range(3)] == ["COMPLETED"] * 3


def test_submitit_gets_results_of_an_array(slurm, tmp_path):
    submitit = pytest.importorskip("submitit", reason="submitit is not installed")
    executor = submitit.AutoExecutor(tmp_path, cluster="slurm")
    executor.update_parameters(timeout_min=5)
    jobs = executor.map_array(operator.mul, [1, 2, 3], [10, 20, 30])
    assert [job.result() for job in jobs] == [10, 40, 90]


def test_submitit_does_not_see_a_death_because_there_is_no_accounting(slurm, tmp_path):
    """`done` asks ``sacct``, which has nothing to say here: it is false for ever."""
    submitit = pytest.importorskip("submitit", reason="submitit is not installed")
    executor = submitit.AutoExecutor(tmp_path, cluster="slurm")
    executor.update_parameters(timeout_min=5)
    job = executor.submit(os._exit, 7)
    failed = slurm.wait_state(job.job_id, "FAILED")
    assert failed["ExitCode"] == "7:0"
    assert not job.done(force_check=True)
    assert job.state == "UNKNOWN"


def test_a_job_is_cancelled(slurm, teller):
    job = teller.submit()
    slurm.run("scancel", job)
    slurm.wait_state(job, "CANCELLED")
    slurm.wait_until(lambda: not slurm.step_processes(), "its processes are gone")
    assert teller.told() == ["start 0", "SIGTERM"]


@pytest.mark.slow
def test_a_job_is_over_its_time(slurm, teller):
    """Between one and one and a half minutes: the controller looks every 30 seconds."""
    job = teller.submit("--time=1", "--signal=USR2@30")
    ended = slurm.wait_state(job, "TIMEOUT", timeout=120)
    assert ended["Restarts"] == "0"
    assert teller.told() == ["start 0", "SIGUSR2", "SIGTERM"]


# -- preemption ----------------------------------------------------------------------------------


def test_an_urgent_job_pushes_out_a_step_after_telling_it(slurm, teller):
    """It gets the signal that it asked for, then SIGTERM, and runs again under its number."""
    job = teller.submit("--signal=USR2@90")
    urgent = slurm.preempt()
    slurm.wait_until(lambda: "SIGUSR2" in teller.told(), "the job is told")
    assert slurm.job(urgent)["JobState"] == "PENDING"
    slurm.wait_state(urgent, "COMPLETED")
    slurm.wait_until(lambda: "start 1" in teller.told(), "the job started again")
    again = slurm.wait_state(job, "RUNNING")
    assert again["Restarts"] == "1"
    assert teller.told() == ["start 0", "SIGUSR2", "SIGTERM", "start 1"]


def test_a_script_is_told_only_if_it_asks_for_it(slurm, teller):
    """Without ``B:`` the signal is for steps, and a script has nothing but its end."""
    teller.submit("--signal=B:USR2@90", step=False)
    slurm.preempt()
    slurm.wait_until(lambda: "SIGUSR2" in teller.told(), "the script is told")


# -- trouble -------------------------------------------------------------------------------------


def test_jobs_survive_the_daemon_of_their_node(slurm, teller):
    job = teller.submit()
    slurm.kill_node()
    slurm.start_node()
    assert slurm.job(job)["JobState"] == "RUNNING"
    assert slurm.job(job)["Restarts"] == "0"
    assert slurm.step_processes()
    assert teller.told() == ["start 0"]


def test_a_node_that_is_silent_is_down_and_its_job_is_requeued(slurm, teller):
    job = teller.submit()
    slurm.kill_node(steps=True)
    assert not slurm.step_processes()
    slurm.wait_until(lambda: "DOWN" in slurm.node_state(), "the node is down")
    waiting = slurm.job(job)
    assert (waiting["JobState"], waiting["Reason"]) == ("PENDING", "BeginTime")
    slurm.start_node()
    slurm.wait_until(lambda: "start 1" in teller.told(), "the job started again")
    assert slurm.job(job)["Restarts"] == "1"
    assert teller.told() == ["start 0", "start 1"]


def test_a_job_that_may_not_be_requeued_fails_with_its_node(slurm, teller):
    job = teller.submit("--no-requeue")
    slurm.kill_node(steps=True)
    slurm.set_node_state("down")
    failed = slurm.wait_state(job, "NODE_FAIL")
    assert failed["Restarts"] == "0"


def test_jobs_survive_a_restart_of_the_controller(slurm, teller):
    job = teller.submit()
    slurm.stop_controller()
    with pytest.raises(ClusterError, match="squeue"):
        slurm.jobs()
    slurm.start_controller()
    assert slurm.job(job)["JobState"] == "RUNNING"
    slurm.run("scancel", job)
    slurm.wait_state(job, "CANCELLED")
    assert teller.told()[0] == "start 0"


def test_a_controller_that_was_killed_starts_again(slurm):
    slurm.kill_controller()
    slurm.start_controller()
    slurm.wait_state(slurm.submit("true", "--output", "/dev/null"), "COMPLETED")


# -- the cluster itself --------------------------------------------------------------------------


def test_two_clusters_know_nothing_of_each_other_and_leave_nothing(slurm):
    with SlurmCluster(Settings(cpus=1)) as other:
        job = other.submit(f"sleep {LONG}", "--output", "/dev/null")
        other.wait_state(job, "RUNNING")
        assert job not in {one.id for one in slurm.jobs() if not one.over}
        folder = other.folder
    assert not folder.exists()
    assert not other.step_processes()
    other.stop()


def test_what_does_not_happen_is_told_with_the_ends_of_the_logs(slurm):
    before = time.monotonic()
    with pytest.raises(ClusterError, match=r"not in 0.2 s: pigs fly\n(.*\n)*--- slurmctld.log\n"):
        slurm.wait_until(lambda: False, "pigs fly", timeout=0.2)
    assert time.monotonic() - before < 30


def test_a_daemon_that_dies_is_noticed(slurm):
    slurm.kill_controller()
    good = slurm.conf.read_text()
    slurm.conf.write_text(f"{good}Nonsense=1\n")
    try:
        with pytest.raises(ClusterError, match=r"slurmctld died while waiting(.*\n)*.*Nonsense"):
            slurm.start_controller()
    finally:
        slurm.conf.write_text(good)
    slurm.reset()
    subprocess.run(["squeue"], check=True, capture_output=True)
