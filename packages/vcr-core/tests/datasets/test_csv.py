from __future__ import annotations

import msgspec
import pytest
from files import X264, encode, numbers_of
from vcr_core.datasets.csvlist import CsvDataset
from vcr_core.datasets.params import CsvParams
from vcr_core.errors import ConfigError
from vcr_core.video.info import VideoReadError
from vcr_core.video.sampling import whole_video


def dataset(folder, text, **params):
    path = folder / "videos.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return CsvDataset(CsvParams(file=str(path), **params))


ODD_NAMES = [
    ("a b.mp4", "one"),
    ("comma, quote \" and 'x'.mp4", "label, with comma"),
    ("Видео 動画.mp4", 'say "hi"'),
    ("#hash 50%.mp4", "NA"),
    ("sub/dir [1].mp4", "007"),
    (" leading blank.mp4", "null"),
]


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a12_odd_names_in_list_files(tmp_path, ending, mark):
    lines = ["label, path"]
    for name, label in ODD_NAMES:
        cells = (label.replace('"', '""'), name.replace('"', '""'))
        lines.append(f'"{cells[0]}", "{cells[1]}"')
        lines.append("")
    lines += ["   ", ""]
    found = dataset(tmp_path, mark + ending.join(lines))
    assert found.ids() == sorted(name for name, _ in ODD_NAMES)
    for name, label in ODD_NAMES:
        item = found.item(name)
        assert found.labels.names[item.label] == label
        assert item.source.name == str(tmp_path / name)


def test_unquoted_values_lose_blanks_around_them(tmp_path):
    found = dataset(tmp_path, "path , label\na.mp4 ,  run \nb.mp4, swim")
    assert found.ids() == ["a.mp4", "b.mp4"]
    assert found.labels.names == ("run", "swim")


def test_ids_splits_and_root(tmp_path):
    text = "path,label,id,split\nx/a.mp4,run,A,test\nx/b.mp4,swim,B,train\nx/c.mp4,jump,,test\n"
    found = dataset(tmp_path, text, split="test", root=str(tmp_path / "videos"))
    assert found.ids() == ["A", "x/c.mp4"]
    # The label space does not depend on the split.
    assert found.labels.names == ("jump", "run", "swim")
    assert found.item("A").source.name == str(tmp_path / "videos" / "x" / "a.mp4")


def test_classes_file_fixes_the_order(tmp_path):
    (tmp_path / "classes.txt").write_text("swim\n\nrun\njump\n")
    names = dataset(tmp_path, "path,label\na.mp4,RUN\n", classes=str(tmp_path / "classes.txt"))
    assert names.labels.names == ("swim", "run", "jump")
    assert names.item("a.mp4").label == 1
    numbers = dataset(
        tmp_path,
        "path,label\na.mp4,2\n",
        classes=str(tmp_path / "classes.txt"),
        label_kind="index",
    )
    assert numbers.item("a.mp4").label == 2


def test_missing_file_is_an_error_when_read_only(tmp_path):
    encode(tmp_path / "good.mp4", 3, options=X264)
    found = dataset(tmp_path, "path,label\ngood.mp4,run\nsub/gone.mp4,run\n")
    assert numbers_of(found.item("good.mp4").source.read(whole_video).frames) == [0, 1, 2]
    item = found.item("sub/gone.mp4")
    with pytest.raises(VideoReadError) as caught:
        item.source.read(whole_video)
    assert str(tmp_path / "sub" / "gone.mp4") in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["empty", "path, label"]),
        ("file,label\na,b\n", [":1:", "no column path", "file, label"]),
        ("path,path,label\n", [":1:", "two columns"]),
        ("path,label\na.mp4,x\nb, c.mp4,y\n", [":3:", "3 values for 2 columns", "quote"]),
        ("path,label\na.mp4\n", [":2:", "1 values"]),
        ("path,label\n,x\nb.mp4,\n", [":2: no path", ":3: no label"]),
        ("path,label\na.mp4,x\n\nb.mp4,x\na.mp4,y\n", [":5:", "already in line 2"]),
        ('path,label\n"a.mp4,x\n', [":2:"]),
        ("path,label\na.mp4,[]\n", [":2:", "no name"]),
        (b"path,label\n\xff\xfe,x\n", ["utf-8"]),
    ],
)
def test_bad_lists_name_file_and_line(tmp_path, text, words):
    with pytest.raises(ConfigError) as caught:
        dataset(tmp_path, text)
    for word in [str(tmp_path / "videos.csv"), *words]:
        assert word in str(caught.value)


def test_unknown_classes_are_listed_with_near_ones(tmp_path):
    (tmp_path / "classes.txt").write_text("swimming\nrunning\n")
    with pytest.raises(ConfigError, match=r"'runing' \(near: 'running'\), 'xyz'"):
        dataset(
            tmp_path,
            "path,label\na.mp4,runing\nb.mp4,xyz\nc.mp4,swimming\n",
            classes=str(tmp_path / "classes.txt"),
        )


def test_other_refusals(tmp_path):
    with pytest.raises(ConfigError, match="no column split"):
        dataset(tmp_path, "path,label\na.mp4,x\n", split="test")
    with pytest.raises(ConfigError, match=r"dataset\.classes"):
        dataset(tmp_path, "path,label\na.mp4,0\n", label_kind="index")
    (tmp_path / "classes.txt").write_text("run\n")
    for label in ("1", "-1", "x"):
        with pytest.raises(ConfigError, match="no index below 1"):
            dataset(
                tmp_path,
                f"path,label\na.mp4,{label}\n",
                classes=str(tmp_path / "classes.txt"),
                label_kind="index",
            )
    with pytest.raises(ConfigError, match=r"gone\.csv"):
        CsvDataset(CsvParams(file=str(tmp_path / "gone.csv")))


def test_params_are_checked_and_paths_are_marked():
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert({"file": "a.csv", "fil": "b"}, CsvParams)
    with pytest.raises(msgspec.ValidationError, match="file"):
        msgspec.convert({}, CsvParams)
    with pytest.raises(msgspec.ValidationError, match="on_error"):
        msgspec.convert({"file": "a", "on_error": "skip"}, CsvParams)
    from vcr_core.config.wording import is_path

    fields = {
        field.name: is_path(field.type) for field in msgspec.inspect.type_info(CsvParams).fields
    }
    assert {name for name, marked in fields.items() if marked} == {
        "root",
        "manifest",
        "file",
        "classes",
    }
