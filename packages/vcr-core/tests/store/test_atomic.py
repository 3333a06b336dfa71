from __future__ import annotations

import json

import pytest
from vcr_core.atomic import replacing, to_json, write_json, write_text
from vcr_core.errors import StoreError


def test_write_replaces_whole_content(tmp_path):
    path = tmp_path / "new" / "file.txt"
    write_text(path, "first, longer")
    write_text(path, "second\n")
    assert path.read_bytes() == b"second\n"
    assert [p.name for p in path.parent.iterdir()] == ["file.txt"]


def test_failure_leaves_the_old_file_and_no_litter(tmp_path):
    path = tmp_path / "file.txt"
    write_text(path, "old")

    def fail():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fail()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file.txt"]


def test_permissions(tmp_path):
    path = tmp_path / "file.txt"
    write_text(path, "a")
    # As any new file: not for the owner alone, as temporary files are.
    other = tmp_path / "plain"
    other.touch()
    assert path.stat().st_mode == other.stat().st_mode
    path.chmod(0o640)
    write_text(path, "b")
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_json_never_has_bare_nan(tmp_path, bad):
    path = tmp_path / "data.json"
    write_json(path, {"fine": 1})
    with pytest.raises(StoreError, match=r"metrics\.psnr\[1\] is"):
        write_json(path, {"metrics": {"psnr": [1.0, bad]}})
    assert json.loads(path.read_text()) == {"fine": 1}


def test_json_refuses_what_is_not_plain_data():
    with pytest.raises(StoreError, match=r"value.* is .*object"):
        to_json([{"a": object()}])


def test_json_is_ascii_and_keeps_text():
    text = to_json({"a": "é\u2028\udc80"})
    assert text.isascii()
    assert json.loads(text) == {"a": "é\u2028\udc80"}
