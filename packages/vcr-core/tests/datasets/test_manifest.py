from __future__ import annotations

import random

import pytest
from files import X264, encode, numbers_of
from vcr_core.datasets.csvlist import CsvDataset
from vcr_core.datasets.folder import FolderDataset
from vcr_core.datasets.kinetics400 import Kinetics400Dataset
from vcr_core.datasets.manifest import (
    Manifest,
    ManifestRow,
    make_manifest,
    order_ids,
    read_manifest,
    shuffle_order,
    stratified_order,
    write_manifest,
)
from vcr_core.datasets.motion.dataset import MotionDataset
from vcr_core.datasets.params import CsvParams, FolderParams, Kinetics400Params, MotionParams
from vcr_core.errors import ConfigError, UsageError
from vcr_core.seeding import subset_order
from vcr_core.video.info import VideoReadError
from vcr_core.video.sampling import whole_video

IDS = [f"video-{i}" for i in range(40)]
LABELS = {video: i % 3 for i, video in enumerate(IDS)}


@pytest.fixture
def root(tmp_path):
    for i, name in enumerate(("run/a, b.mp4", "run/c.mp4", "swim/d.mp4")):
        path = tmp_path / "videos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        encode(path, 4 + i, options=X264)
    return tmp_path / "videos"


def test_hash_rule_loses_one_video_only():
    chosen = order_ids(IDS, LABELS, "hash", 42)[:10]
    assert chosen == subset_order(reversed(IDS), 42)[:10]
    fewer = order_ids([i for i in IDS if i != chosen[3]], LABELS, "hash", 42)[:10]
    assert [i for i in chosen if i != chosen[3]] == fewer[:9]
    assert order_ids(IDS, LABELS, "hash", 43)[:10] != chosen


@pytest.mark.golden
def test_shuffle_rule_is_pythons():
    expected = sorted(IDS)
    random.Random(42).shuffle(expected)
    assert shuffle_order(reversed(IDS), 42) == expected
    assert shuffle_order("edcba", 42) == ["d", "b", "c", "e", "a"]


def test_stratified_rule_takes_classes_in_turn():
    chosen = order_ids(IDS, LABELS, "stratified", 42)
    assert sorted(chosen) == sorted(IDS)
    for start in range(0, 36, 3):
        assert {LABELS[i] for i in chosen[start : start + 3]} == {0, 1, 2}
    one_class = [i for i in chosen if LABELS[i] == 1]
    assert one_class == [i for i in subset_order(IDS, 42) if LABELS[i] == 1]
    assert stratified_order([], {}) == []


def test_list_rule_keeps_the_order():
    assert order_ids(["b", "a"], {"a": 0, "b": 0}, "list", 1) == ["b", "a"]


def test_written_manifest_reads_back(tmp_path):
    rows = (
        ManifestRow(id="a/b", path="x, y.mp4", label='say "hi"', sha256="0" * 64, n_frames=7),
        ManifestRow(id="c", path="c.mp4", label="NA", fps="30000/1001", width=3, height=4),
    )
    manifest = Manifest(rows=rows, facts={"rule": "hash", "seed": "42"})
    write_manifest(tmp_path / "m.csv", manifest)
    assert read_manifest(tmp_path / "m.csv") == manifest
    assert (tmp_path / "m.csv").read_text().startswith("# rule: hash\n# seed: 42\nid,path,label,")


def test_dataset_restricted_to_a_manifest(root, tmp_path):
    whole = FolderDataset(FolderParams(root=str(root)))
    manifest = make_manifest(whole, root=root, name="folder", rule="hash", seed=1, limit=2)
    assert [row.id for row in manifest.rows] == subset_order(whole.ids(), 1)[:2]
    write_manifest(tmp_path / "m.csv", manifest)
    part = FolderDataset(FolderParams(root=str(root), manifest=str(tmp_path / "m.csv")))
    assert part.labels == whole.labels
    for row in manifest.rows:
        assert part.item(row.id).label == whole.item(row.id).label
        assert part.item(row.id).source.sha256() == row.sha256
        clip = part.item(row.id).source.read(whole_video)
        assert numbers_of(clip.frames) == list(range(clip.n_decoded))


def test_replaced_and_missing_files_are_errors_of_their_own(root, tmp_path):
    whole = FolderDataset(FolderParams(root=str(root)))
    write_manifest(
        tmp_path / "m.csv", make_manifest(whole, root=root, name="folder", rule="hash", seed=1)
    )
    encode(root / "run" / "c.mp4", 9, options=X264)
    (root / "swim" / "d.mp4").unlink()
    part = FolderDataset(FolderParams(root=str(root), manifest=str(tmp_path / "m.csv")))
    assert part.ids() == whole.ids()
    assert part.item("run/a, b.mp4").source.read(whole_video).n_decoded == 4
    with pytest.raises(VideoReadError, match=r"c\.mp4.*SHA-256"):
        part.item("run/c.mp4").source.read(whole_video)
    with pytest.raises(VideoReadError, match=r"d\.mp4.*No such file"):
        part.item("swim/d.mp4").source.read(whole_video)


def test_wrong_number_of_frames_names_the_file(root, tmp_path):
    text = "id,path,label,sha256,n_frames\nx,run/c.mp4,run,,6\n"
    (tmp_path / "m.csv").write_text(text)
    part = FolderDataset(FolderParams(root=str(root), manifest=str(tmp_path / "m.csv")))
    with pytest.raises(VideoReadError, match=r"c\.mp4.*6 that the manifest"):
        part.item("x").source.read(whole_video)


def test_manifest_of_other_datasets(root, tmp_path):
    (tmp_path / "m.csv").write_text("id,path,label,sha256\nk,run/c.mp4,Zumba,\n")
    kinetics = Kinetics400Dataset(
        Kinetics400Params(root=str(root), manifest=str(tmp_path / "m.csv"))
    )
    assert kinetics.ids() == ["k"]
    assert kinetics.item("k").label == 399
    (tmp_path / "list.csv").write_text("path,label\na.mp4,zumba\n")
    params = {"file": str(tmp_path / "list.csv"), "manifest": str(tmp_path / "m.csv")}
    assert CsvDataset(CsvParams(root=str(root), **params)).ids() == ["k"]
    (tmp_path / "m.csv").write_text("id,path,label,sha256\nk,run/c.mp4,dancing,\n")
    with pytest.raises(ConfigError, match="dancing"):
        Kinetics400Dataset(Kinetics400Params(root=str(root), manifest=str(tmp_path / "m.csv")))


@pytest.mark.parametrize(
    ("row", "word"),
    [
        (",a.mp4,x,,", "no id"),
        ("a,,x,,", "no path"),
        ("a,a.mp4,,,", "no label"),
        ("a,a.mp4,x,12ab,", "64 hex digits"),
        ("a,a.mp4,x,,0", "n_frames"),
        ("a,a.mp4,x,,many", "n_frames"),
        ("a,a.mp4,x,,\na,b.mp4,x,,", "already in line 3"),
    ],
)
def test_bad_manifests_name_the_line(tmp_path, row, word):
    (tmp_path / "m.csv").write_text(f"# rule: hash\nid,path,label,sha256,n_frames\n{row}\n")
    with pytest.raises(ConfigError, match=word) as caught:
        read_manifest(tmp_path / "m.csv")
    assert f"m.csv:{3 + row.count(chr(10))}" in str(caught.value)


def test_what_no_manifest_can_list(root, tmp_path):
    motion = MotionDataset(MotionParams(videos=2))
    with pytest.raises(UsageError, match="has no file"):
        make_manifest(motion, root=root, name="motion", rule="hash", seed=1)
    whole = FolderDataset(FolderParams(root=str(root)))
    with pytest.raises(UsageError, match="outside"):
        make_manifest(whole, root=tmp_path / "other", name="folder", rule="hash", seed=1)
    (root / "swim" / "d.mp4").unlink()
    with pytest.raises(UsageError, match="cannot be read"):
        make_manifest(whole, root=root, name="folder", rule="hash", seed=1)
