"""The store of what runs leave for each other: whole files or none, and never more than allowed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from vcr_core.reuse_store import SUFFIX, ReuseStore, Shelf, clear, shelves, trim

SHELF = Shelf("attack-1", {"kind": "attack", "model": "m"})
CLIP = np.arange(600, dtype=np.uint8)
BIG = 10**9


def entry(root: Path, key: str = "k", shelf: str = SHELF.name) -> Path:
    return root / shelf / f"{key}{SUFFIX}"


def test_what_is_kept_comes_back_bit_for_bit(tmp_path: Path) -> None:
    store = ReuseStore(tmp_path, BIG)
    scores = np.array([0.1, -np.inf, 1e-30], dtype=np.float32)
    facts = {"rows": [0, 2], "trace": {"loss": [0.1, None]}, "run": "ä"}
    assert store.save(SHELF, "k", {"clip": CLIP, "scores": scores}, facts)
    found = ReuseStore(tmp_path, BIG).load(SHELF, "k")
    assert found is not None
    assert found.facts == facts
    assert found.arrays["clip"].tobytes() == CLIP.tobytes()
    assert found.arrays["scores"].tobytes() == scores.tobytes()
    assert store.load(SHELF, "other") is None
    assert store.load(Shelf("attack-2"), "k") is None


@pytest.mark.parametrize("kept", [0, 5, 40, 77, 78, 300, -1])
def test_half_a_file_counts_as_none(
    tmp_path: Path, kept: int, caplog: pytest.LogCaptureFixture
) -> None:
    store = ReuseStore(tmp_path, BIG)
    store.save(SHELF, "k", {"clip": CLIP})
    path = entry(tmp_path)
    path.write_bytes(path.read_bytes()[:kept])
    assert store.load(SHELF, "k") is None
    assert "damaged" in caplog.text
    assert store.save(SHELF, "k", {"clip": CLIP})
    assert store.load(SHELF, "k") is not None


def test_a_single_changed_bit_is_seen_anywhere(tmp_path: Path) -> None:
    store = ReuseStore(tmp_path, BIG)
    store.save(SHELF, "k", {"clip": CLIP})
    path = entry(tmp_path)
    whole = path.read_bytes()
    for place in range(0, len(whole), 97):
        changed = bytearray(whole)
        changed[place] ^= 1
        path.write_bytes(changed)
        assert store.load(SHELF, "k") is None, place
    path.write_bytes(whole)
    assert store.load(SHELF, "k") is not None


def test_what_a_killed_writer_leaves_is_not_read(tmp_path: Path) -> None:
    store = ReuseStore(tmp_path, BIG)
    store.save(SHELF, "k", {"clip": CLIP})
    half = entry(tmp_path).read_bytes()[:100]
    (tmp_path / SHELF.name / f".j{SUFFIX}.abc.part").write_bytes(half)
    assert store.load(SHELF, "j") is None
    assert trim(tmp_path, 0) == 0
    assert [p.name for p in (tmp_path / SHELF.name).iterdir()] == ["about.json"]


def test_the_limit_holds_and_the_longest_unused_goes_first(tmp_path: Path) -> None:
    size = _size_of_one(tmp_path / "probe")
    root = tmp_path / "store"
    store = ReuseStore(root, 5 * size)
    for turn, key in enumerate("abcde"):
        assert store.save(SHELF, key, {"clip": CLIP})
        os.utime(entry(root, key), (turn, turn))
    assert store.load(SHELF, "a") is not None  # used just now
    assert store.save(SHELF, "f", {"clip": CLIP})
    left = {p.name.removesuffix(SUFFIX) for p in (root / SHELF.name).glob(f"*{SUFFIX}")}
    assert left == {"a", "d", "e", "f"}
    assert sum(p.stat().st_size for p in (root / SHELF.name).glob(f"*{SUFFIX}")) <= 5 * size


def test_what_is_larger_than_the_limit_is_not_kept(tmp_path: Path) -> None:
    store = ReuseStore(tmp_path / "store", 100)
    assert not store.save(SHELF, "k", {"clip": CLIP})
    assert not (tmp_path / "store").exists()


def test_a_folder_that_cannot_be_written_to_is_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    store = ReuseStore(tmp_path / "file", BIG)
    assert not store.save(SHELF, "k", {"clip": CLIP})
    assert "nothing is kept" in caplog.text
    assert store.load(SHELF, "k") is None


def test_trim_to_nothing_and_clear(tmp_path: Path) -> None:
    store = ReuseStore(tmp_path / "store", BIG)
    for key in "ab":
        store.save(SHELF, key, {"clip": CLIP})
    (found,) = shelves(store.root)
    assert (found.entries, found.about["model"]) == (2, "m")
    assert found.size == sum(p.stat().st_size for p in found.folder.glob(f"*{SUFFIX}"))
    assert trim(store.root, 0) == 0
    assert shelves(store.root) == []
    clear(store.root)
    clear(store.root)
    assert not store.root.exists()
    assert shelves(store.root) == []


def _size_of_one(root: Path) -> int:
    ReuseStore(root, BIG).save(SHELF, "k", {"clip": CLIP})
    return entry(root).stat().st_size
