"""Attacks are computed once, also by workers, and also where a process dies on the way."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from vcr_core.atomic import to_json
from vcr_core.record_schema import stable_part
from vcr_core.records import read_records
from vcr_core.reuse_store import REUSED, ReuseStore, Shelf
from vcr_e2e.harness import EXPERIMENT, assert_complete

SWEEP = (
    EXPERIMENT.replace('[defense]\nname = "toy-noise"\n', "").replace(
        "eval_repeats = 2", "eval_repeats = 2\nattacker_knows_defense = false"
    )
    + '\n[matrix]\ndefense = ["none", "toy-noise"]\n'
)


@pytest.fixture(autouse=True)
def store(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VCR_CACHE_DIR", str(here / "cache"))
    (here / "sweep.toml").write_text(SWEEP)
    return here / "cache" / "reuse"


def kept(results: str) -> dict[str, list[str]]:
    """Return every record of every run, without the note of where its attack comes from."""
    runs = {}
    for path in sorted(Path(results).glob("*/run.json")):
        assert_complete(path.parent)
        listed = []
        for record in read_records(path.parent):
            stable = stable_part(record)
            notes = [n for n in stable.pop("notes", []) if not n.startswith(REUSED)]
            stable["notes"] = notes
            listed.append(to_json(stable))
        runs[path.parent.name] = listed
    return runs


def taken(results: str) -> int:
    return sum(
        note.startswith(REUSED)
        for path in Path(results).glob("*/run.json")
        for record in read_records(path.parent)
        for note in record.get("notes", ())
    )


def test_a_sweep_dies_and_workers_go_on_with_it(start, vcr, store):
    limit = ("--limit", "6")
    off = ("--set", "runtime.reuse=false", "--results", "off")
    assert vcr("sweep", "sweep.toml", *limit, *off).code == 0
    assert not store.exists()
    life = start("sweep", "sweep.toml", *limit, VCR_E2E_DELAY="0.3")
    life.wait_until(lambda: any(store.glob("attack-*/*.entry")))
    life.signal(signal.SIGKILL)
    assert life.end().code == -signal.SIGKILL
    # What a writer leaves that dies half-way is no entry.
    whole = next(store.glob("attack-*/*.entry"))
    whole.with_name(f".{whole.name}.0.part").write_bytes(whole.read_bytes()[:50])
    ended = vcr("sweep", "sweep.toml", *limit, "--workers", "2")
    assert ended.code == 0, ended.err
    assert kept("results") == kept("off")
    assert taken("results") == 6
    assert taken("off") == 0


def test_the_plan_says_what_is_reused(vcr):
    plan = vcr("sweep", "sweep.toml", "--dry-run", "--json").json["combinations"]
    assert [(c["turn"], c["attack"], c["attack_of"]) for c in plan] == [
        (1, "computed", None),
        (2, "reused from turn 1", 0),
    ]
    shown = vcr("sweep", "sweep.toml", "--dry-run")
    assert shown.out.splitlines()[1].split("\t")[:4] == [
        "run", "2", "defense = toy-noise", "reused from turn 1",
    ]  # fmt: skip
    assert "1 of them reuse the attack of another one" in shown.err
    off = vcr("sweep", "sweep.toml", "--set", "runtime.reuse=false", "--dry-run", "--json")
    assert [c["attack"] for c in off.json["combinations"]] == ["computed", "computed"]


def test_the_cache_is_listed_and_cleared(vcr, store):
    assert "nothing is kept" in vcr("cache", "list").err
    assert vcr("cache", "clear").code == 0
    import numpy as np

    about = {"kind": "attack", "model": "m", "attack": "a"}
    ReuseStore(store, 10**6).save(Shelf("attack-1", about), "k", {"clip": np.zeros(9)})
    listed = vcr("cache", "list", "--json").json
    assert [(s["about"]["attack"], s["entries"]) for s in listed["shelves"]] == [("a", 1)]
    assert listed["bytes"] == next(store.rglob("*.entry")).stat().st_size
    assert vcr("cache", "list").out.split("\t")[:3] == ["attack", "m", "a"]
    refused = vcr("cache", "clear")
    assert refused.code == 2
    assert "--yes" in refused.err
    assert store.exists()
    assert vcr("cache", "clear", "--yes").code == 0
    assert not store.exists()
    assert vcr("cache", "list", "--cache", "elsewhere", "--json").json["shelves"] == []
