"""Attacks that raise, exit, print or take too long; observers that misbehave; no network."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from vcr_core.manifest import read_manifest
from vcr_core.records import read_records
from vcr_e2e.harness import assert_complete, essence, only_run

RUN = ("run", "experiment.toml", "--results", "results")
VIDEOS = ("east/disc", "north/square")


@pytest.mark.parametrize(
    ("what", "kind"),
    [("raise", "RuntimeError"), ("exit", "SystemExit"), ("hang", "VideoTimeLimit")],
)
def test_a_failing_video_costs_one_record(vcr, reference, monkeypatch, what, kind):
    monkeypatch.setenv("VCR_E2E_TROUBLE", f"{what} {' '.join(VIDEOS)}")
    limit = ["--set", "runtime.video_time_limit_s=1.5"] if what == "hang" else []
    done = vcr(*RUN, "--max-errors", "2", *limit)
    assert done.code == 0, done.err
    folder = only_run(Path("results"))
    assert_complete(folder)
    failed = {r["video"]: r for r in read_records(folder) if r["status"] == "error"}
    assert set(failed) == set(VIDEOS)
    for record in failed.values():
        assert record["error"]["type"] == kind
        assert record["error"]["stage"] == "attack"
    batches = {record["batch"] for record in failed.values()}
    mine = [r for r in essence(folder) if json.loads(r)["batch"] not in batches]
    assert mine == [r for r in reference.records if json.loads(r)["batch"] not in batches]
    monkeypatch.delenv("VCR_E2E_TROUBLE")
    assert vcr("run", folder, "--retry-errors").code == 0
    assert essence(folder) == reference.records


def test_what_components_print_is_not_in_the_data(vcr, monkeypatch):
    monkeypatch.setenv("VCR_E2E_TROUBLE", f"print {' '.join(VIDEOS)}")
    done = vcr(*RUN, "--json")
    assert done.json["status"] == "done"
    assert "printed by a component" in done.err


class TestObservers:
    def seen(self, file: Path) -> list[str]:
        lines = file.read_text().splitlines()
        assert len(lines) == 26
        return [line.removeprefix("record ") for line in lines if line.startswith("record")]

    def test_change_nothing(self, vcr, reference, monkeypatch, here):
        file = here / "seen"
        monkeypatch.setenv("VCR_E2E_OBSERVER", str(file))
        done = vcr(*RUN)
        assert done.code == 0
        assert "observer vcr_record_written of plugin" in done.err
        assert "vcr-e2e" in done.err
        assert "Traceback" not in done.err
        folder = only_run(Path("results"))
        assert essence(folder) == reference.records
        manifest = read_manifest(folder)
        assert manifest["batches"] == read_manifest(reference.folder)["batches"]
        assert (folder / "summary.json").read_text().count("clean_accuracy")
        assert self.seen(file) == [r["video"] for r in read_records(folder)]
        assert file.read_text().startswith("started\n")
        assert file.read_text().endswith("finished\n")

    def test_are_told_in_worker_processes(self, start, reference, here):
        file = here / "seen"
        done = start(*RUN, "--workers", "2", VCR_E2E_OBSERVER=str(file)).end()
        assert done.code == 0, done.err
        folder = only_run(Path("results"))
        assert essence(folder) == reference.records
        assert sorted(self.seen(file)) == sorted(r["video"] for r in read_records(folder))


OFFLINE = """\
import sys

def refuse(event, arguments):
    if event.startswith("socket.") and event not in ("socket.__new__", "socket.gethostname"):
        with open({log!r}, "a") as log:
            log.write(f"{{event}} {{arguments}}\\n")

sys.addaudithook(refuse)
with open({log!r}, "a") as log:
    log.write("watching\\n")
"""


@pytest.mark.parametrize("workers", [(), ("--workers", "1")], ids=["inline", "process"])
def test_a_run_opens_no_connection(start, here, workers):
    site, log = here / "site", here / "sockets"
    site.mkdir()
    (site / "sitecustomize.py").write_text(OFFLINE.format(log=str(log)))
    from os import environ, pathsep

    path = f"{site}{pathsep}{environ['PYTHONPATH']}"
    done = start(*RUN, "--limit", "4", *workers, PYTHONPATH=path).end()
    assert done.code == 0, done.err
    assert log.read_text().splitlines() == ["watching"] * (2 if workers else 1)
