from __future__ import annotations

import pytest
from vcr_core.datasets.params import Ucf101Params
from vcr_core.datasets.ucf101 import Ucf101Dataset
from vcr_core.errors import ConfigError


@pytest.fixture
def root(tmp_path):
    lists = tmp_path / "ucfTrainTestlist"
    lists.mkdir()
    (lists / "classInd.txt").write_text("1 ApplyEyeMakeup\r\n2 ApplyLipstick\r\n3 Archery\r\n")
    (lists / "testlist01.txt").write_text(
        "ApplyEyeMakeup/v_ApplyEyeMakeup_g01_c01.avi\nArchery/v_Archery_g07_c05.avi\n\n"
    )
    (lists / "testlist03.txt").write_text("Archery/v_Archery_g01_c01.avi\n")
    (lists / "trainlist01.txt").write_text("ApplyLipstick/v_ApplyLipstick_g08_c01.avi 2\n")
    (tmp_path / "UCF-101").mkdir()
    return tmp_path


def make(root, **params):
    return Ucf101Dataset(Ucf101Params(root=str(root), **params))


def test_test_split(root):
    dataset = make(root)
    assert dataset.labels.id == "ucf101"
    assert dataset.labels.names == ("ApplyEyeMakeup", "ApplyLipstick", "Archery")
    assert dataset.ids() == [
        "ApplyEyeMakeup/v_ApplyEyeMakeup_g01_c01",
        "Archery/v_Archery_g07_c05",
    ]
    item = dataset.item("Archery/v_Archery_g07_c05")
    assert item.label == 2
    assert item.source.name == str(root / "UCF-101" / "Archery" / "v_Archery_g07_c05.avi")


def test_train_split_and_other_folds(root):
    train = make(root, split="train")
    assert train.ids() == ["ApplyLipstick/v_ApplyLipstick_g08_c01"]
    assert train.item(train.ids()[0]).label == 1
    assert make(root, fold=3).ids() == ["Archery/v_Archery_g01_c01"]
    with pytest.raises(ConfigError, match=r"testlist02\.txt"):
        make(root, fold=2)


def test_lists_elsewhere(root, tmp_path):
    moved = tmp_path / "lists"
    (root / "ucfTrainTestlist").rename(moved)
    assert len(make(root, annotations=str(moved)).ids()) == 2
    with pytest.raises(ConfigError, match=r"classInd\.txt"):
        make(root)


@pytest.mark.parametrize(
    ("name", "text", "word"),
    [
        ("testlist01.txt", "Nothing/v.avi\n", r"testlist01\.txt:1:"),
        ("testlist01.txt", "v.avi\n", r"testlist01\.txt:1:"),
        ("testlist01.txt", "Archery/v_a.avi 2\n", "class number 2"),
        ("classInd.txt", "1 A\n3 B\n", r"1\.\.2"),
        ("classInd.txt", "A\n", r"classInd\.txt:1:"),
        ("classInd.txt", "1 A\n2 a\n", "same class name"),
    ],
)
def test_bad_lists(root, name, text, word):
    (root / "ucfTrainTestlist" / name).write_text(text)
    with pytest.raises(ConfigError, match=word):
        make(root)
