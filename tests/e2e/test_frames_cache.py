"""Decoded frames are kept between runs, and no number depends on it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from vcr_core.record_schema import stable_part
from vcr_core.records import read_records
from vcr_core.video.source import FileSource
from vcr_e2e.harness import only_run
from vcr_e2e.videos import shape, shapes_folder

RUN = (
    "run", "--model", "toy-cnn", "--attack", "toy-descent", "--dataset", "folder",
    "--set", "dataset.root=videos", "--set", "runtime.device=cpu", "--set", "runtime.threads=1",
    "--set", "paths.cache=cache",
)  # fmt: skip


@pytest.fixture
def decoded(here, monkeypatch) -> list[str]:
    """Names of the videos that have been decoded, as it goes on."""
    shapes_folder(here / "videos")
    names: list[str] = []
    read = FileSource.read

    def counted(self, sampler):
        names.append(self.path.name)
        return read(self, sampler)

    monkeypatch.setattr(FileSource, "read", counted)
    return names


@pytest.fixture
def run(vcr):
    def run(results: str, *more: str) -> list[dict]:
        done = vcr(*RUN, "--results", results, *more)
        assert done.code == 0, done.err
        return [stable_part(record) for record in read_records(only_run(Path(results)))]

    return run


def test_cold_warm_and_off_give_equal_records(run, decoded, vcr):
    off = run("off", "--set", "runtime.reuse=false")
    assert len(decoded) == 9
    assert run("cold", "--set", "runtime.reuse=true") == off
    assert len(decoded) == 18
    # Another attack: nothing but frames and clean predictions is there to be taken over.
    warm = run("warm", "--attack", "toy-search")
    assert len(decoded) == 18
    alone = run("alone", "--attack", "toy-search", "--set", "runtime.reuse=false")
    assert warm == alone
    kinds = [
        s["about"]["kind"]
        for s in vcr("cache", "list", "--cache", "cache", "--json").json["shelves"]
    ]
    assert "frames" in kinds
    assert vcr("cache", "clear", "--cache", "cache", "--yes").code == 0
    assert run("cleared", "--attack", "toy-search") == alone


def test_another_content_is_decoded(run, decoded, here):
    run("first", "--set", "runtime.reuse=true")
    shape(here / "videos" / "east" / "disc.mkv", "west")
    decoded.clear()
    changed = run("second", "--attack", "toy-search")
    assert decoded == ["disc.mkv"]
    assert changed == run("alone", "--attack", "toy-search", "--set", "runtime.reuse=false")


def test_a_damaged_entry_is_decoded_anew(run, decoded):
    off = run("off", "--attack", "toy-search", "--set", "runtime.reuse=false")
    run("cold", "--set", "runtime.reuse=true")
    for shelf in Path("cache/reuse").glob("frames-*"):
        for entry in shelf.glob("*.entry"):
            data = bytearray(entry.read_bytes())
            data[-200] ^= 1
            entry.write_bytes(data)
    decoded.clear()
    assert run("warm", "--attack", "toy-search") == off
    assert len(decoded) == 9


def test_nothing_is_kept_where_not_all_would_fit(run, decoded):
    room = "--set", "runtime.reuse_gb=0.0001"
    run("first", "--set", "runtime.reuse=true", *room)
    assert not list(Path("cache/reuse").glob("frames-*"))


def test_drawn_videos_are_not_kept(vcr, here):
    done = vcr(
        "run", "experiment.toml", "--set", "runtime.reuse=true", "--set", "paths.cache=cache",
        "--limit", "2", "--json",
    )  # fmt: skip
    assert json.loads(done.out)["status"] == "done"
    assert list(Path("cache/reuse").iterdir())
    assert not list(Path("cache/reuse").glob("frames-*"))
