from __future__ import annotations

import numpy as np
import pytest
from files import X264, cut, encode, h264, numbers_of, picture
from vcr_core.datasets.folder import FolderDataset
from vcr_core.datasets.labels import UNLABELLED
from vcr_core.datasets.params import FolderParams
from vcr_core.errors import ConfigError
from vcr_core.protocols import VideoDataset
from vcr_core.video.info import VideoReadError
from vcr_core.video.sampling import whole_video


def touch(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def test_classes_ids_and_labels(tmp_path):
    touch(
        tmp_path,
        "swim/b.mp4",
        "swim/a.AVI",
        "swim/deep/er/a.mkv",
        "run/a.webm",
        "run/notes.txt",
        "run/.hidden.mp4",
        ".cache/x.mp4",
        "top.mp4",
    )
    dataset = FolderDataset(FolderParams(root=str(tmp_path)))
    assert isinstance(dataset, VideoDataset)
    assert dataset.labels.names == ("run", "swim")
    assert dataset.ids() == ["run/a.webm", "swim/a.AVI", "swim/b.mp4", "swim/deep/er/a.mkv"]
    assert [dataset.item(i).label for i in dataset.ids()] == [0, 1, 1, 1]
    assert dataset.item("swim/a.AVI").source.name == str(tmp_path / "swim" / "a.AVI")
    with pytest.raises(KeyError):
        dataset.item("top.mp4")


def test_reading_and_hashing(tmp_path):
    (tmp_path / "run").mkdir()
    encode(tmp_path / "run" / "a.mp4", 5, options=X264)
    source = FolderDataset(FolderParams(root=str(tmp_path))).item("run/a.mp4").source
    assert numbers_of(source.read(whole_video).frames) == [0, 1, 2, 3, 4]
    assert len(source.sha256()) == 64
    (tmp_path / "run" / "a.mp4").unlink()
    assert source.sha256() is None
    with pytest.raises(VideoReadError) as caught:
        source.read(whole_video)
    assert str(tmp_path / "run" / "a.mp4") in str(caught.value)


def test_a_folder_of_images_is_one_video(tmp_path):
    folder = tmp_path / "run" / "clip"
    folder.mkdir(parents=True)
    for i in range(3):
        encode(
            folder / f"{i}.png",
            images=[picture(i)],
            codec="png",
            pix_fmt="rgb24",
            container="image2pipe",
        )
    dataset = FolderDataset(FolderParams(root=str(tmp_path)))
    assert dataset.ids() == ["run/clip"]
    source = dataset.item("run/clip").source
    np.testing.assert_array_equal(source.read(whole_video).frames, [picture(i) for i in range(3)])
    before = source.sha256()
    (folder / "0.png").rename(folder / "9.png")
    assert source.sha256() != before


def test_on_error_reaches_the_reader(tmp_path):
    (tmp_path / "run").mkdir()
    whole = h264(tmp_path / "whole.mp4", 60, container_options={"movflags": "faststart"})
    cut(tmp_path / "run" / "a.mp4", whole, 0.9)
    strict = FolderDataset(FolderParams(root=str(tmp_path)))
    with pytest.raises(VideoReadError):
        strict.item("run/a.mp4").source.read(whole_video)
    lenient = FolderDataset(FolderParams(root=str(tmp_path), on_error="truncate"))
    assert lenient.item("run/a.mp4").source.read(whole_video).truncated


def test_what_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"dataset\.root"):
        FolderDataset(FolderParams())
    with pytest.raises(ConfigError, match="no folder"):
        FolderDataset(FolderParams(root=str(tmp_path / "gone")))
    with pytest.raises(ConfigError, match="expected root"):
        FolderDataset(FolderParams(root=str(tmp_path)))
    touch(tmp_path, "high jump/a.mp4", "high_jump/b.mp4")
    with pytest.raises(ConfigError, match="repeats"):
        FolderDataset(FolderParams(root=str(tmp_path)))


def test_videos_in_no_folder_of_a_class_are_unlabelled(tmp_path):
    touch(tmp_path, "b.mp4", "a.MKV", "notes.txt", ".hidden.mp4")
    touch(tmp_path, "frames/0.png", "frames/1.png")
    (tmp_path / "empty").mkdir()
    dataset = FolderDataset(FolderParams(root=str(tmp_path)))
    assert dataset.labels == UNLABELLED
    assert dataset.ids() == ["a.MKV", "b.mp4", "frames"]
    assert {dataset.item(i).label for i in dataset.ids()} == {0}


def test_videos_beside_the_folders_of_classes_are_left_out_aloud(tmp_path, caplog):
    touch(tmp_path, "run/a.mp4", "top.mp4", "cover.png")
    assert FolderDataset(FolderParams(root=str(tmp_path))).ids() == ["run/a.mp4"]
    assert "1 videos lie in no folder of a class and are left out, first top.mp4" in caplog.text


def test_nothing_at_all_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="neither folders nor videos"):
        FolderDataset(FolderParams(root=str(tmp_path)))
