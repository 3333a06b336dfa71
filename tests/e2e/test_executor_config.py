"""``[executor]``: parameters of its own, from files and from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from vcr_core.config.resolve import resolve_run
from vcr_core.errors import ConfigError

CLUSTER = """
[executor]
name = "slurm"
workers = 8
partition = "gpu"
"""


def chosen(*overrides: str):
    executor = resolve_run("experiment.toml", overrides=overrides).experiment.executor
    return executor.name, executor.workers, executor.params


@pytest.mark.parametrize("place", ["vcr.local.toml", "experiment.toml"])
def test_another_executor_leaves_the_parameters_of_the_first(here: Path, place: str):
    with (here / place).open("a") as file:
        file.write(CLUSTER)
    name, workers, params = chosen("executor.cpus=4")
    assert (name, workers, params["partition"], params["cpus"]) == ("slurm", 8, "gpu", 4)
    assert chosen("executor.workers=2", "executor.name=process") == ("process", 2, {})
    assert chosen("executor.name=process", "executor.workers=2") == ("process", 2, {})
    assert chosen("executor.name=inline") == ("inline", 0, {})
    name, workers, params = chosen("executor.name=slurm", "executor.workers=2")
    assert (name, workers, params["partition"]) == ("slurm", 2, "gpu")


def test_a_run_that_a_cluster_began_goes_on_here(here: Path, vcr):
    """The folder remembers who ran it; another executor does not get its parameters."""
    (here / "vcr.local.toml").write_text(CLUSTER)
    folder = vcr("run", "experiment.toml", "--limit", "4", "--plan").out.strip()
    assert vcr("run", folder, "--set", "executor.name=inline").code == 0


def test_parameters_are_checked(here: Path):
    with (here / "experiment.toml").open("a") as file:
        file.write(CLUSTER.replace("partition", "partitoin"))
    with pytest.raises(ConfigError) as caught:
        chosen()
    (problem,) = caught.value.problems
    assert "executor.partitoin: unknown key; did you mean 'partition'?" in problem
    with pytest.raises(ConfigError, match=r"executor: time = 'soon': minutes, H:MM:SS"):
        resolve_run({"model": "toy-cnn", "executor": {"name": "slurm", "time": "soon"}}, cwd=here)
