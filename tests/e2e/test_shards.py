"""Records do not depend on shares, order or executor."""

from __future__ import annotations

from pathlib import Path

import pytest
from vcr_e2e.harness import assert_complete, essence, only_run

PLAN = ("run", "experiment.toml", "--results", "results", "--plan")


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("reverse", [False, True])
def test_shares_in_any_order(vcr, reference, count, reverse):
    planned = vcr(*PLAN)
    folder = planned.out.strip()
    assert (planned.code, folder) == (0, str(only_run(Path("results"))))
    assert not list(Path(folder).glob("records/*"))
    shares = [f"{index}/{count}" for index in range(count)]
    options = ["--reverse"] if reverse else []
    for share in reversed(shares) if reverse else shares:
        done = vcr("run", folder, "--shard", share, *options)
        assert (done.code, done.out) == (0, "")
    assert len(list(Path(folder).glob("records/*.jsonl"))) == count
    assert_complete(Path(folder))
    assert essence(Path(folder)) == reference.records
    before = sorted(Path(folder).glob("records/*"))
    last = vcr("run", folder)
    assert last.code == 0
    assert sorted(Path(folder).glob("records/*")) == before
    assert vcr("status", folder).out.split("\t")[1:3] == ["done", "24/24"]


def test_a_whole_run_backwards(vcr, reference):
    assert vcr("run", "experiment.toml", "--reverse").code == 0
    assert essence(only_run(Path("results"))) == reference.records


def test_more_workers_than_cores(start, reference):
    assert start("run", "experiment.toml", "--workers", "3").end().code == 0
    folder = only_run(Path("results"))
    assert len(list(folder.glob("records/*.jsonl"))) == 3
    assert essence(folder) == reference.records


def test_a_trained_model_whatever_the_threads(start):
    """Sums whose last bits depend on the number of threads: the plan's number counts."""
    command = (
        "run", "--model", "tiny-r3d", "--attack", "pgd", "--eps", "4/255", "--limit", "4",
        "--set", "attack.steps=3", "--set", "runtime.batch_videos=2",
    )  # fmt: skip
    inline = start(*command, "--results", "inline", OMP_NUM_THREADS="3").end()
    assert inline.code == 0, inline.err
    planned = start(*command, "--results", "process", "--plan", OMP_NUM_THREADS="3").end()
    workers = start("run", planned.out.strip(), "--workers", "2", OMP_NUM_THREADS="1").end()
    assert workers.code == 0, workers.err
    expected = essence(only_run(Path("inline")))
    assert len(expected) == 4
    assert essence(only_run(Path("process"))) == expected


def test_backwards_is_refused_with_workers(vcr):
    done = vcr("run", "experiment.toml", "--workers", "2", "--reverse")
    assert done.code == 2
    assert "--reverse" in done.err


def test_a_share_alone_leaves_the_rest(vcr, reference):
    folder = vcr(*PLAN).out.strip()
    assert vcr("run", folder, "--shard", "1/3").code == 0
    assert vcr("status", folder).out.split("\t")[2] == "8/24"
    # Another number of shares later: what is there is not made again.
    for share in ("0/2", "1/2"):
        assert vcr("run", folder, "--shard", share).code == 0
    assert_complete(Path(folder))
    assert essence(Path(folder)) == reference.records


@pytest.mark.parametrize("share", ["2/2", "x", "1", "-1/2", "1/0"])
def test_a_share_that_does_not_exist(vcr, share):
    folder = vcr(*PLAN).out.strip()
    done = vcr("run", folder, f"--shard={share}")
    assert done.code == 2
    assert "0 <= K < N" in done.err


def test_a_share_needs_a_folder(vcr):
    done = vcr("run", "experiment.toml", "--shard", "0/2")
    assert done.code == 2
    assert "--plan" in done.err
