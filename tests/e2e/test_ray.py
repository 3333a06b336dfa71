"""A sweep on a local Ray cluster of two workers, whose parts die."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from vcr_core.records import read_records
from vcr_core.testing.contract import cases
from vcr_e2e.harness import alive, flying, parent_of, sweep_records, wait_until

pytest.importorskip("ray")

SWEEP = '\n[matrix]\n"threat.eps" = ["2/255", "4/255"]\n'
RAY = ("--results", "ray", "--set", "executor.name=ray", "--set", "executor.workers=2")
SLOW = {"VCR_E2E_DELAY": "0.3"}


@pytest.fixture
def sweep(here: Path, vcr) -> dict[str, list[str]]:
    (here / "sweep.toml").write_text((here / "experiment.toml").read_text() + SWEEP)
    assert vcr("sweep", "sweep.toml", "--results", "inline").code == 0
    return sweep_records("inline")


def test_a_worker_dies_then_an_actor(start, sweep):
    """The worker is started again by its actor, the actor is placed anew by the driver."""
    process = start("sweep", "sweep.toml", *RAY, results="ray", **SLOW)
    worker = process.wait_until(lambda: flying("ray", "0of2"))["pid"]
    os.kill(worker, signal.SIGKILL)
    again = process.wait_until(lambda: (f := flying("ray", "0of2")) and f["pid"] != worker and f)[
        "pid"
    ]
    actor = parent_of(again)
    os.kill(actor, signal.SIGKILL)
    done = process.end()
    assert done.code == 0, done.err
    assert "worker 0of2 died (its actor was lost)" in done.err
    assert not alive(again), "the worker of a dead actor goes on"
    assert sweep_records("ray") == sweep
    assert len({path.name for path in Path("ray").glob("*/records/*.jsonl")}) >= 3


def test_interrupted_and_finished_in_this_process(start, vcr, sweep):
    process = start("sweep", "sweep.toml", *RAY, results="ray", **SLOW)
    process.wait_until(lambda: flying("ray", "1of2"))
    process.wait_until(lambda: any(read_records(p.parent) for p in Path("ray").glob("*/run.json")))
    process.signal(signal.SIGINT)
    assert process.end().code == 130, process.done
    assert vcr("sweep", "sweep.toml", "--results", "ray").code == 0
    assert sweep_records("ray") == sweep


def test_the_driver_dies_and_the_workers_with_it(start, vcr, sweep):
    process = start("sweep", "sweep.toml", *RAY, results="ray", VCR_E2E_DELAY="2")
    workers = [
        process.wait_until(lambda s=share: flying("ray", s))["pid"] for share in ("0of2", "1of2")
    ]
    process.signal(signal.SIGKILL)
    process.end()
    wait_until(lambda: not any(alive(pid) for pid in workers))
    assert vcr("sweep", "sweep.toml", "--results", "ray").code == 0
    assert sweep_records("ray") == sweep


@pytest.fixture
def cluster():
    """A cluster of two nodes with a CPU each."""
    from ray.cluster_utils import Cluster

    settings = {"num_cpus": 1, "object_store_memory": 80_000_000}
    nodes = Cluster(initialize_head=True, head_node_args=settings)
    nodes.add_node(**settings)
    yield nodes
    nodes.shutdown()


def test_a_cluster_that_is_there_loses_a_node(start, sweep, cluster):
    """It is used as it is and goes on afterwards; the lost worker is placed on what is left."""
    where = ("--set", f'executor.address="{cluster.address}"')
    process = start("sweep", "sweep.toml", *RAY, *where, results="ray", **SLOW)
    for share in ("0of2", "1of2"):
        process.wait_until(lambda s=share: flying("ray", s))
    cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
    done = process.end()
    assert done.code == 0, done.err
    assert "its actor was lost" in done.err
    assert sweep_records("ray") == sweep
    alone = ("--set", "executor.workers=0", "--results", "again")
    again = start("sweep", "sweep.toml", *RAY, *where, *alone, results="again")
    assert again.end().code == 0, again.done
    assert sweep_records("again") == sweep


def test_what_no_node_can_hold_is_refused(start, here):
    done = start("run", "experiment.toml", *RAY, "--set", "executor.gpus=1").end()
    assert done.code == 3
    assert "no node of the Ray cluster has 1 CPU, 1 GPU for a worker" in done.err


def test_no_cluster_at_the_address(start, here):
    done = start(
        "run", "experiment.toml", *RAY, "--set", "executor.address=auto", RAY_ADDRESS=""
    ).end()
    assert done.code == 3
    assert "executor.address = 'auto'" in done.err


CONTRACT = [
    case
    for case in cases("vcr-core", params={"executor/ray": {"retries": 3}})
    if case.subject.ref == "ray"
]


@pytest.mark.parametrize("check", CONTRACT, ids=lambda case: case.id)
def test_contract(check, monkeypatch):
    monkeypatch.setenv("PYTHONWARNINGS", "")
    check()
