"""Why a machine can have no cluster, and what is found out about its processes and ports."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest
from vcr_cluster import machine


def test_what_is_missing_is_named_with_the_packages_that_have_it(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "PROGRAMS", str(tmp_path))
    reason = machine.missing()
    assert "munged of munge" in reason
    assert "slurmctld, slurmd, sbatch" in reason
    assert "apt-get install slurm-wlm munge" in reason


def test_only_root_can_have_a_cluster(monkeypatch, tmp_path):
    for names in machine.NEEDED.values():
        for name in names:
            (tmp_path / name).touch(mode=0o755)
    monkeypatch.setattr(machine, "PROGRAMS", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert machine.missing() is None
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "root" in machine.missing()


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no /proc")
def test_processes_are_found_by_their_environment():
    mark = f"VCR_TEST_MARK={os.urandom(8).hex()}"
    name, _, value = mark.partition("=")
    assert machine.processes_with(mark) == {}
    with subprocess.Popen(["sleep", "600"], env={name: value, "OTHER": "1"}) as process:
        try:
            # The environment is that of this process until the program is loaded.
            while not (found := machine.processes_with(mark)):
                assert process.poll() is None
            assert found.keys() == {process.pid}
            assert {name, "OTHER"} <= found[process.pid]
            assert machine.program_of(process.pid) == "sleep"
        finally:
            process.kill()
    assert machine.processes_with(mark) == {}
    assert machine.program_of(process.pid) == ""


def test_free_ports_are_different_and_can_be_listened_on():
    ports = machine.free_ports(5)
    assert len(set(ports)) == 5
    for port in ports:
        with socket.socket() as one:
            one.bind(("127.0.0.1", port))
