"""A transfer matrix from the command line: planned, run, interrupted, reported."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from vcr_core.atomic import to_json
from vcr_core.record_schema import stable_part
from vcr_core.records import read_records
from vcr_core.reuse_store import REUSED
from vcr_e2e.harness import EXPERIMENT, assert_complete

SWEEP = EXPERIMENT.replace('[defense]\nname = "toy-noise"\n', "").replace(
    '[model]\nname = "toy-cnn"\n', ""
) + ('\n[matrix]\nmodel = ["toy-cnn", "toy-batch-norm"]\n')


@pytest.fixture(autouse=True)
def sweep(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VCR_CACHE_DIR", str(here / "cache"))
    (here / "sweep.toml").write_text(SWEEP)


def kept(results: str) -> dict[str, list[str]]:
    """Return every record of every run, without the note of where its attack comes from."""
    runs = {}
    for path in sorted(Path(results).glob("*/run.json")):
        assert_complete(path.parent)
        listed = []
        for record in read_records(path.parent):
            stable = stable_part(record)
            stable["notes"] = [n for n in stable.pop("notes", []) if not n.startswith(REUSED)]
            listed.append(to_json(stable))
        runs[path.parent.name] = listed
    return runs


def test_the_plan_says_who_is_shown_what(vcr):
    plan = vcr("sweep", "sweep.toml", "--transfer", "--dry-run", "--json").json["combinations"]
    assert [(c["values"], c["turn"], c["attack"]) for c in plan] == [
        ({"model": "toy-cnn"}, 3, "computed"),
        ({"model": "toy-batch-norm"}, 1, "computed"),
        ({"model": "toy-batch-norm", "source": "toy-cnn"}, 4, "reused from turn 3"),
        ({"model": "toy-cnn", "source": "toy-batch-norm"}, 2, "reused from turn 1"),
    ]
    shown = vcr("sweep", "sweep.toml", "--transfer", "--dry-run")
    assert "model = toy-batch-norm, source = toy-cnn" in shown.out
    alone = vcr("sweep", "sweep.toml", "--transfer", "--dry-run", "--model", "toy-cnn")
    assert alone.code == 2
    assert "the sweep has one model" in alone.err


def test_a_sweep_dies_and_goes_on_and_reports_its_matrix(start, vcr):
    limit = ("--transfer", "--limit", "6")
    off = vcr("sweep", "sweep.toml", *limit, "--set", "runtime.reuse=false", "--results", "off")
    assert off.code == 0, off.err
    life = start("sweep", "sweep.toml", *limit, VCR_E2E_DELAY="0.3")
    life.wait_until(lambda: any(Path("cache").glob("reuse/attack-*/*.entry")))
    life.signal(signal.SIGKILL)
    assert life.end().code == -signal.SIGKILL
    ended = vcr("sweep", "sweep.toml", *limit, "--workers", "2", "--json")
    assert ended.code == 0, ended.err
    assert kept("results") == kept("off")
    assert len(kept("off")) == 4
    (matrix,) = ended.json["transfer"]
    cells = {(c["source"], c["model"]): c for c in matrix["cells"]}
    assert len(cells) == 4
    assert cells["toy-cnn", "toy-cnn"]["n"] == 6
    assert cells["toy-cnn", "toy-cnn"]["itself"]
    # The other model is right about a video or none of these, and so is the pair.
    assert cells["toy-cnn", "toy-batch-norm"]["n"] <= 1
    text = vcr("report", "results", "--format", "md").out
    assert "## Transfer between models" in text
    assert "moody on toy-cnn" in text
    assert vcr("report", "results", "--json").json["transfer"] == ended.json["transfer"]
    written = vcr("export", "results", "--videos", "videos", "--preview", "none", "--limit", "1")
    assert written.code == 0, written.err
    assert written.err.count("judges videos that were made on") == 2
    rows = vcr("report", "results").out.splitlines()
    assert "transfer_rate" in rows[0].split("\t")
    assert len(rows) == 5


def test_other_commands_know_the_source(vcr, here):
    run = vcr("run", "sweep.toml", "--set", "model=toy-batch-norm", "--set", "source=toy-cnn")
    assert run.code == 2  # a sweep is no run
    (here / "pair.toml").write_text(
        SWEEP.partition("[matrix]")[0] + '[model]\nname = "toy-batch-norm"\n\n'
        '[source]\nname = "toy-cnn"\n'
    )
    shown = vcr("config", "show", "pair.toml", "--limit", "4")
    assert shown.code == 0, shown.err
    assert "toy-cnn" in shown.out
    assert vcr("run", "pair.toml", "--limit", "4").code == 0
    (folder,) = Path("results").iterdir()
    assert "-moody@toy-cnn-" in folder.name
    assert vcr("run", folder).code == 0
    refused = vcr("export", folder, "--videos", "videos")
    assert refused.code == 2
    assert "export them from the run of the same attack on toy-cnn itself" in refused.err
    own = vcr("run", "pair.toml", "--limit", "4", "--set", "source=none", "--results", "own")
    assert own.code == 0
    compared = vcr("compare", "own", folder)
    assert compared.code == 0, compared.err
    assert "moody on toy-cnn" in compared.out
    wrong = vcr("run", "pair.toml", "--set", "attack=toy-grain")
    assert wrong.code == 2
    assert "asks no model anything" in wrong.err
    checked = vcr("config", "validate", "pair.toml")
    assert checked.code == 0, checked.err
