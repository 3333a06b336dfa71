"""Tests that need a cluster start one on this machine; without its programs, they are skipped."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "e2e" / "plugin"))

from vcr_cluster.machine import missing
from vcr_cluster.slurm import SlurmCluster
from vcr_e2e.fixtures import here, plugins, start, vcr

__all__ = ["here", "plugins", "start", "vcr"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.cluster)
            item.add_marker(pytest.mark.timeout(240))


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[SlurmCluster]:
    """A running Slurm cluster that clients of this process and of those it starts talk to."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    with SlurmCluster() as cluster, pytest.MonkeyPatch.context() as patch:
        for name, value in cluster.environment.items():
            patch.setenv(name, value)
        yield cluster


@pytest.fixture
def slurm(slurm_cluster: SlurmCluster) -> Iterator[SlurmCluster]:
    """The cluster, whole and with no job that is not over, whatever the test before did to it."""
    slurm_cluster.reset()
    yield slurm_cluster
    slurm_cluster.reset()
