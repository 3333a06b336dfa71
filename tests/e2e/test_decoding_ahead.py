"""Decoding in another thread changes no record, whatever a decoder does there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from vcr_core.manifest import read_manifest
from vcr_core.record_schema import stable_part
from vcr_core.records import read_records
from vcr_e2e.harness import assert_complete, only_run

RUN = ("run", "experiment.toml", "--dataset", "moody-shapes", "--set", "protocol.stop=budget")
AHEAD = ("--set", "runtime.prefetch=2")
HERE = ("--set", "runtime.prefetch=0")


def rows(results: str) -> dict[str, dict[str, Any]]:
    """Return what must be equal of each record; a traceback names the thread that it is of."""
    found = {}
    for record in read_records(only_run(Path(results))):
        stable = stable_part(record)
        if "error" in stable:
            stable["error"] = {**stable["error"], "traceback": ""}
        found[record["video"]] = stable
    return found


def test_records_are_the_same_with_and_without(vcr):
    assert vcr(*RUN, *HERE, "--results", "here").code == 0
    assert vcr(*RUN, *AHEAD, "--results", "ahead").code == 0
    assert rows("ahead") == rows("here")


def test_shares_and_workers_decode_ahead_too(vcr):
    assert vcr(*RUN, *HERE, "--results", "here").code == 0
    assert vcr(*RUN, *AHEAD, "--results", "workers", "--workers", "2").code == 0
    assert vcr(*RUN, *AHEAD, "--results", "reverse", "--reverse").code == 0
    assert rows("workers") == rows("here") == rows("reverse")


@pytest.mark.parametrize(
    ("what", "kind"),
    [("raise", "RuntimeError"), ("exit", "SystemExit"), ("hang", "VideoTimeLimit")],
)
def test_a_decoder_that_fails_costs_its_video_only(vcr, monkeypatch, what, kind):
    planned = only_planned(vcr)
    # The first one of all, two of one batch, and the last one of all.
    bad = [planned[0][0], *planned[4], planned[-1][-1]]
    monkeypatch.setenv("VCR_E2E_DECODER", f"{what} {' '.join(bad)}")
    limit = ["--set", "runtime.video_time_limit_s=1.5"] if what == "hang" else []
    command = (*RUN, "--max-errors", "4", *limit)
    assert vcr(*command, *HERE, "--results", "here").code == 0
    done = vcr(*command, *AHEAD, "--results", "ahead")
    assert done.code == 0, done.err
    found = rows("ahead")
    assert found == rows("here")
    failed = {video: r["error"] for video, r in found.items() if r["status"] == "error"}
    assert set(failed) == set(bad)
    assert {(e["type"], e["stage"]) for e in failed.values()} == {(kind, "decode")}


def test_a_decoder_that_kills_the_process_is_caught_at_its_own_video(vcr, start):
    planned = only_planned(vcr)
    deadly = [planned[3][1], planned[4][0]]
    assert vcr(*RUN, *HERE, "--results", "usual").code == 0
    usual = rows("usual")
    ended = start(
        *RUN, *AHEAD, "--workers", "1", "--max-errors", "2",
        VCR_E2E_DECODER=f"die {' '.join(deadly)}", VCR_E2E_DELAY="0.3",
    ).end()  # fmt: skip
    assert ended.code == 0, ended.err
    assert_complete(only_run(Path("results")))
    neighbours = {video for batch in planned[3:5] for video in batch}
    for video, record in rows("results").items():
        if video in deadly:
            assert record["error"]["type"] == "WorkerDied"
            assert "stage decode" in record["error"]["message"]
        elif video in neighbours:
            # Stacked with fewer neighbours: the last bits may differ.
            assert record["attacked"]["pred"] == usual[video]["attacked"]["pred"]
        else:
            assert record == usual[video]


def only_planned(vcr: Any) -> list[list[str]]:
    done = vcr(*RUN, "--plan", "--results", "plan")
    assert done.code == 0, done.err
    batches: list[list[str]] = read_manifest(only_run(Path("plan")))["batches"]
    return batches
