"""What does not show what the record says is not written, and half a file never stays."""

from __future__ import annotations

import errno
import json
import shutil

import numpy as np
import pytest
from vcr_core.errors import StoreError, UsageError
from vcr_core.export_videos import previews
from vcr_core.export_videos.index import INDEX_FILE
from vcr_core.summary import load_run
from vcr_core.video import writer
from vcr_core.video.writer import write_exact


def listed(folder):
    return [entry["video"] for entry in json.loads((folder / INDEX_FILE).read_text())["videos"]]


def reload(result):
    from dataclasses import replace

    return replace(result, view=load_run(result.folder))


def change_record(result, number, field, key, value):
    [path] = (result.folder / "records").glob("*.jsonl")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    records[number][field][key] = value
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return reload(result)


def test_frames_that_give_another_prediction_are_refused(evaluate, tmp_path):
    result = evaluate()
    first, second = (record["video"] for record in result.records)
    entries = json.loads((result.folder / "artifacts" / "clips.json").read_text())
    path = result.folder / "artifacts" / entries[0]["file"]
    with np.load(path) as arrays:
        clean = arrays["clean"]
    np.savez_compressed(path, clean=clean, adversarial=clean[::-1])
    with pytest.raises(StoreError, match=rf"1 of 2 videos were not written.*{first}: adversarial"):
        result.export_videos(tmp_path, previews=())
    [folder] = [p.parent for p in tmp_path.glob("*/videos.json")]
    assert listed(folder) == [second]
    assert len(list(folder.glob("*/*.mkv"))) == 2


@pytest.mark.parametrize(("key", "value"), [("pred", 0), ("p_pred", 0.123)])
def test_records_that_say_something_else_are_noticed(key, value, evaluate, tmp_path):
    result = evaluate()
    result.export_videos(tmp_path / "a", previews=())
    wrong = change_record(result, 1, "attacked", key, value)
    bad = [answer for answer in wrong.check_videos(tmp_path / "a") if not answer.is_good]
    assert [(a.video, a.version, a.verdict) for a in bad] == [
        (result.records[1]["video"], "adversarial", "differs")
    ]
    with pytest.raises(StoreError, match="not written"):
        wrong.export_videos(tmp_path / "b", previews=())
    shutil.rmtree(result.folder / "artifacts")
    with pytest.raises(StoreError, match=r"made other videos.*attacked"):
        wrong.export_videos(tmp_path / "c", recreate=True, previews=())
    assert not (tmp_path / "c").exists()


def test_damaged_kept_frames_are_named(evaluate, tmp_path):
    result = evaluate(limit=1)
    [path] = (result.folder / "artifacts").glob("*.npz")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(StoreError, match=rf"{path.name}.*--recreate"):
        result.export_videos(tmp_path)
    np.savez(path, clean=np.zeros((4, 8, 8, 3), np.float32), adversarial=np.zeros(3))
    with pytest.raises(StoreError, match="8-bit"):
        result.export_videos(tmp_path)


def test_files_that_were_changed_are_not_believed(evaluate, tmp_path):
    result = evaluate(limit=3)
    one, two, three = result.export_videos(tmp_path, previews=())
    # Another exact file with a fitting sidecar, damage, and nothing at all.
    write_exact(one / "adversarial.mkv", np.zeros((4, 32, 32, 3), np.uint8))
    data = bytearray((two / "adversarial.mkv").read_bytes())
    data[len(data) // 2] ^= 0xFF
    (two / "adversarial.mkv").write_bytes(bytes(data))
    (three / "adversarial.mkv").unlink()
    answers = result.check_videos(tmp_path)
    bad = {answer.video: answer for answer in answers if not answer.is_good}
    assert {answer.verdict for answer in bad.values()} == {"unreadable"}
    assert len(bad) == 3
    assert all(answer.problem for answer in bad.values())
    assert sum(answer.is_good for answer in answers) == 3


def test_another_run_does_not_mix_in(evaluate, tmp_path):
    result = evaluate()
    [folder, _] = result.export_videos(tmp_path, previews=())
    index = folder.parent / INDEX_FILE
    told = json.loads(index.read_text())
    index.write_text(json.dumps({**told, "started": "2020-01-01T00:00:00Z"}))
    for call in (result.export_videos, result.check_videos):
        with pytest.raises(StoreError, match="another run"):
            call(tmp_path)
    index.write_text("{")
    with pytest.raises(StoreError, match="another folder"):
        result.export_videos(tmp_path)


def test_nothing_to_check(evaluate, tmp_path):
    with pytest.raises(StoreError, match="export some first"):
        evaluate().check_videos(tmp_path)


def test_videos_that_are_not_there(evaluate, tmp_path):
    result = evaluate()
    with pytest.raises(UsageError, match="no video 'nowhere'"):
        result.export_videos(tmp_path, only=["nowhere"])
    change = {"status": "error", "error": {"message": "x"}}
    [path] = (result.folder / "records").glob("*.jsonl")
    lines = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps({**json.loads(lines[0]), **change}), *lines[1:]]) + "\n")
    with pytest.raises(UsageError, match="its status is error"):
        reload(result).export_videos(tmp_path, only=[result.records[0]["video"]])
    assert len(reload(result).export_videos(tmp_path, previews=())) == 1


def test_a_place_that_is_no_folder(evaluate, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written to"):
        evaluate(limit=1).export_videos(tmp_path / "file" / "out", previews=())


def test_a_full_disk_leaves_whole_files(evaluate, tmp_path, monkeypatch):
    result = evaluate(limit=3)
    original, calls = writer.encode, []

    def encode(*given, **named):
        calls.append(1)
        original(*given, **named)
        if len(calls) == 4:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(writer, "encode", encode)
    with pytest.raises(StoreError, match=r"No space left on device; the videos that .* complete"):
        result.export_videos(tmp_path, previews=())
    [folder] = [p.parent for p in tmp_path.glob("*/videos.json")]
    assert listed(folder) == [result.records[0]["video"]]
    assert not list(tmp_path.rglob("*.tmp*"))
    monkeypatch.undo()
    assert len(result.export_videos(tmp_path, previews=())) == 3
    assert all(answer.is_good for answer in result.check_videos(tmp_path))


def test_a_file_that_the_disk_cut_is_not_believed(evaluate, tmp_path):
    resource = pytest.importorskip("resource")
    result = evaluate(limit=1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(StoreError):
            result.export_videos(tmp_path, previews=())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.rglob("*.mkv"))
    assert not list(tmp_path.rglob("*.tmp*"))


def test_interrupted_and_gone_on_with(evaluate, tmp_path, monkeypatch):
    result = evaluate()
    result.export_videos(tmp_path, previews=["gif"])

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(previews, "write_bytes", stop)
    with pytest.raises(KeyboardInterrupt):
        result.export_videos(tmp_path, previews=["mp4"])
    [folder] = [p.parent for p in tmp_path.glob("*/videos.json")]
    # The first one is being replaced, so it is not promised any more.
    assert listed(folder) == [result.records[1]["video"]]
    assert not list(tmp_path.rglob("*.tmp*"))
    monkeypatch.undo()
    result.export_videos(tmp_path, previews=["mp4"])
    assert len(listed(folder)) == 2
    names = {path.name for path in folder.glob("*/*_preview.*")}
    assert names == {"side-by-side_preview.mp4", "difference_preview.mp4"}
