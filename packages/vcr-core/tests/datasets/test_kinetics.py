from __future__ import annotations

import logging

import pytest
from vcr_core.datasets.kinetics400 import Kinetics400Dataset
from vcr_core.datasets.labels import kinetics400_names, label_index, match_labels, normalise_label
from vcr_core.datasets.params import Kinetics400Params
from vcr_core.errors import ConfigError

PLAIN = "abcdefghijk_000001_000011"
UNDERSCORES = "_a_b-c_d-e__000010_000020"  # eleven characters of id, then the times
HEADER = "label,youtube_id,time_start,time_end,split,is_cc\n"


def touch(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def make(root, **params):
    return Kinetics400Dataset(Kinetics400Params(root=str(root), **params))


def class_of(dataset, video):
    return dataset.labels.names[dataset.item(video).label]


def test_label_list():
    names = kinetics400_names()
    assert len(names) == 400
    assert list(names) == sorted(names)
    assert names[0] == "abseiling"
    assert names[399] == "zumba"
    assert "massaging person's head" in names
    assert len(label_index(names, "k400")) == 400


def test_annotation_table_in_any_depth(tmp_path):
    touch(tmp_path, f"a/b/{PLAIN}.mp4", f"{UNDERSCORES}.mkv", "z/1234567890-_000000_000010.webm")
    (tmp_path / "val.csv").write_text(
        HEADER
        + "abseiling,abcdefghijk,1,11,val,0\n"
        + "hurling (sport),_a_b-c_d-e_,10,20,validate,0\n"
        + "zumba,notondisk01,0,10,val,1\n"
        + "zumba,othersplit1,0,10,train,1\n"
    )
    dataset = make(tmp_path)
    assert dataset.ids() == sorted([PLAIN, UNDERSCORES])
    assert class_of(dataset, PLAIN) == "abseiling"
    assert class_of(dataset, UNDERSCORES) == "hurling (sport)"
    assert dataset.item(UNDERSCORES).source.name == str(tmp_path / f"{UNDERSCORES}.mkv")


def test_files_without_annotation_are_left_out_aloud(tmp_path, caplog):
    touch(tmp_path, f"{PLAIN}.mp4", "xxxxxxxxxxx_000000_000010.mp4", "holiday.mp4")
    (tmp_path / "list.csv").write_text(HEADER + "zumba,abcdefghijk,1,11,val,0\n")
    with caplog.at_level(logging.WARNING):
        dataset = make(tmp_path, annotations=str(tmp_path / "list.csv"))
    assert dataset.ids() == [PLAIN]
    assert "1 files below" in caplog.text
    assert "xxxxxxxxxxx_000000_000010.mp4" in caplog.text
    assert "holiday.mp4" in caplog.text


def test_table_without_split_and_is_cc_and_files_without_times(tmp_path):
    touch(tmp_path, "abcdefghijk.mp4", "twicetwice1.mp4")
    (tmp_path / "list.csv").write_text(
        "youtube_id,time_start,time_end,label\nabcdefghijk,1,11,zumba\n"
        "twicetwice1,0,10,yoga\ntwicetwice1,10,20,zumba\n"
    )
    dataset = make(tmp_path, annotations=str(tmp_path / "list.csv"))
    assert dataset.ids() == ["abcdefghijk"]


def test_folders_name_the_classes(tmp_path):
    touch(
        tmp_path,
        f"val/hurling_(sport)/{PLAIN}.mp4",
        f"val/massaging persons head/part1/{UNDERSCORES}.mp4",
        f"train/yoga/{'t' * 11}_000000_000010.mp4",
    )
    dataset = make(tmp_path)
    assert dataset.ids() == sorted([PLAIN, UNDERSCORES])
    assert class_of(dataset, PLAIN) == "hurling (sport)"
    assert class_of(dataset, UNDERSCORES) == "massaging person's head"
    assert make(tmp_path, split="train").ids() == [f"{'t' * 11}_000000_000010"]


def test_lines_of_path_and_index(tmp_path):
    lines = f"a folder/{PLAIN}.mp4 0\n\r\nb/{UNDERSCORES}.mp4 399\n"
    (tmp_path / "list.txt").write_bytes(b"\xef\xbb\xbf" + lines.encode())
    dataset = make(tmp_path, annotations=str(tmp_path / "list.txt"))
    assert class_of(dataset, PLAIN) == "abseiling"
    assert class_of(dataset, UNDERSCORES) == "zumba"
    assert dataset.item(PLAIN).source.name == str(tmp_path / "a folder" / f"{PLAIN}.mp4")
    (tmp_path / "bad.txt").write_text("a.mp4 400\nb.mp4\n")
    with pytest.raises(ConfigError, match=r"(?s)bad\.txt:1:.*bad\.txt:2:"):
        make(tmp_path, annotations=str(tmp_path / "bad.txt"))


def test_what_is_refused(tmp_path):
    touch(tmp_path, f"jogging backwards/{PLAIN}.mp4", f"zumbaa/{UNDERSCORES}.mp4")
    with pytest.raises(ConfigError, match=r"2 class names.*'zumbaa' \(near: 'zumba'\)"):
        make(tmp_path)
    (tmp_path / "val.csv").write_text(HEADER + "zumba,abcdefghijk,one,11,val,0\n")
    with pytest.raises(ConfigError, match=r"val\.csv:2"):
        make(tmp_path)


def test_one_clip_in_two_places(tmp_path):
    touch(tmp_path, f"yoga/{PLAIN}.mp4", f"zumba/{PLAIN}.mp4")
    with pytest.raises(ConfigError, match=r"two videos have the id.*yoga.*zumba"):
        make(tmp_path)


def test_file_outside_any_class(tmp_path):
    touch(tmp_path, f"{PLAIN}.mp4")
    with pytest.raises(ConfigError, match=r"dataset\.annotations"):
        make(tmp_path)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Hurling_(Sport)", "hurling (sport)"),
        ("massaging person\u2019s head", "massaging person's head"),
        ("  tying   knot [not on a tie]", "tying knot (not on a tie)"),
        ('"zumba"', "ZUMBA"),
    ],
)
def test_names_meet_after_normalisation(one, other):
    assert normalise_label(one) == normalise_label(other)
    assert match_labels([one], [other], "here") == {one: 0}


def test_names_that_stay_different():
    names = ("skiing crosscountry", "skiing slalom", "skiing (not slalom or crosscountry)")
    assert len(label_index(names, "here")) == 3
    with pytest.raises(ConfigError, match="same class name"):
        label_index(("high jump", "High_Jump"), "here")
    with pytest.raises(ConfigError, match="no name"):
        label_index(("a", "()"), "here")
