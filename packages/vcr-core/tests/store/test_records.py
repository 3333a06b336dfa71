from __future__ import annotations

import json
import os
import subprocess
import sys

import msgspec
import pytest
from vcr_core import records as store
from vcr_core.errors import StoreError
from vcr_core.record_schema import RECORD_FIELDS, json_schema, stable_part, validate_record
from vcr_core.records import (
    MAX_LINE_BYTES,
    RecordWriter,
    check_complete,
    encode_record,
    latest,
    next_attempts,
    raw_records,
    read_records,
    record_files,
    record_path,
)


def _record(video, *, batch=0, attempt=1, **more):
    return {"video": video, "batch": batch, "attempt": attempt, "schema": 1, **more}


def _videos(records):
    return [record["video"] for record in records]


def test_records_come_back_with_unknown_fields(tmp_path, ten_records):
    written = [{**record, "from_the_future": {"a": [1, None]}} for record in ten_records]
    with RecordWriter(record_path(tmp_path, 0, 0)) as writer:
        writer.append(written)
        assert writer.count == 10
    assert read_records(tmp_path) == written
    assert record_files(tmp_path) == [tmp_path / "records" / "part-0-0.jsonl"]


def test_a_batch_is_one_write(tmp_path, monkeypatch):
    calls = []
    write = os.write
    with RecordWriter(record_path(tmp_path, 0, 0)) as writer:
        monkeypatch.setattr(os, "write", lambda fd, data: calls.append(data) or write(fd, data))
        writer.append([_record("a"), _record("b")])
    assert len(calls) == 1
    assert calls[0].count(b"\n") == 2


def test_nothing_is_written_for_an_empty_batch(tmp_path):
    with RecordWriter(record_path(tmp_path, 0, 0)) as writer:
        writer.append([])
    assert raw_records(tmp_path) == []


def test_lines_have_the_fields_of_the_schema_first_and_in_order():
    line = json.loads(encode_record({"zeta": 1, "video": "a", "alpha": 2, "schema": 1, "run": "r"}))
    assert list(line) == ["schema", "run", "video", "alpha", "zeta"]
    shuffled = json.loads(encode_record(dict.fromkeys(reversed(RECORD_FIELDS))))
    assert list(shuffled) == list(RECORD_FIELDS)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_nan_is_refused_with_video_and_place(tmp_path, bad):
    with RecordWriter(record_path(tmp_path, 0, 0)) as writer:
        with pytest.raises(StoreError, match=r"'a'.*metrics\.psnr\.value"):
            writer.append([_record("b"), _record("a", metrics={"psnr": {"value": bad}})])
        assert writer.count == 0
    assert raw_records(tmp_path) == []


def test_fsync_every_n_records_and_at_the_end(tmp_path, monkeypatch):
    synced = []
    fsync = os.fsync
    with RecordWriter(record_path(tmp_path, 0, 0), fsync_every=3) as writer:
        monkeypatch.setattr(os, "fsync", lambda fd: synced.append(writer.count) or fsync(fd))
        for number in range(4):
            writer.append([_record(str(number))])
    assert synced == [3, 4]


def test_closed_writer_refuses(tmp_path):
    writer = RecordWriter(record_path(tmp_path, 0, 0))
    writer.close()
    writer.close()
    with pytest.raises(StoreError, match="closed"):
        writer.append([_record("a")])


def test_torn_last_line_is_dropped_even_if_it_parses(tmp_path):
    path = record_path(tmp_path, 0, 0)
    with RecordWriter(path) as writer:
        writer.append([_record("a")])
    with path.open("ab") as file:
        file.write(b'{"video": "b", "attempt": 1}')
    assert _videos(read_records(tmp_path)) == ["a"]


def test_writer_leaves_a_torn_file_alone_and_goes_on_beside_it(tmp_path):
    path = record_path(tmp_path, 0, 0)
    path.parent.mkdir()
    torn = encode_record(_record("a")) + b'{"video": "b", "att'
    path.write_bytes(torn)
    with RecordWriter(path) as writer:
        writer.append([_record("b", attempt=1), _record("a", attempt=2)])
    assert path.read_bytes() == torn
    assert [p.name for p in record_files(tmp_path)] == ["part-0-0.jsonl", "part-0-0_1.jsonl"]
    assert [(r["video"], r["attempt"]) for r in read_records(tmp_path)] == [("b", 1), ("a", 2)]


def test_a_full_disk_is_an_error_and_later_records_survive(tmp_path, monkeypatch):
    path = record_path(tmp_path, 0, 0)
    write = os.write
    with RecordWriter(path) as writer:
        writer.append([_record("a")])
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda fd, data: write(fd, data[:7]))
            with pytest.raises(StoreError, match="only 7 of"):
                writer.append([_record("b")])
        writer.append([_record("b")])
        assert writer.count == 2
    assert _videos(read_records(tmp_path)) == ["a", "b"]


def test_write_error_is_a_store_error(tmp_path, monkeypatch):
    def fail(_fd, _data):
        raise OSError(28, "No space left on device")

    with RecordWriter(record_path(tmp_path, 0, 0)) as writer:
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", fail)
            with pytest.raises(StoreError, match="No space left"):
                writer.append([_record("a")])
        writer.append([_record("a")])
    assert _videos(read_records(tmp_path)) == ["a"]


def test_damaged_line_in_the_middle_names_file_and_line(tmp_path):
    path = record_path(tmp_path, 0, 0)
    path.parent.mkdir()
    path.write_bytes(encode_record(_record("a")) + b'{"video": \n' + encode_record(_record("b")))
    with pytest.raises(StoreError, match=r"part-0-0\.jsonl:2: damaged record"):
        read_records(tmp_path)


@pytest.mark.parametrize("line", [b"[1]", b'{"batch": 1}', b'{"video": "a", "x": NaN}', b"\xff"])
def test_what_is_no_record_is_damage(tmp_path, line):
    path = record_path(tmp_path, 0, 0)
    path.parent.mkdir()
    path.write_bytes(line + b"\n")
    with pytest.raises(StoreError, match=":1: damaged record"):
        read_records(tmp_path)


def test_newer_schema_is_refused(tmp_path):
    with RecordWriter(record_path(tmp_path, 0, 0)) as writer:
        writer.append([{**_record("a"), "schema": 2}])
    with pytest.raises(StoreError, match="newer than this version"):
        read_records(tmp_path)


def test_last_attempt_counts_wherever_it_is(tmp_path):
    with RecordWriter(record_path(tmp_path, 1, 0)) as writer:
        writer.append([_record("a", attempt=1, status="error"), _record("b", attempt=1)])
    with RecordWriter(record_path(tmp_path, 0, 0)) as writer:
        writer.append([_record("a", attempt=2, status="ok"), _record("b", attempt=2)])
    found = read_records(tmp_path)
    assert [(r["video"], r["attempt"]) for r in found] == [("a", 2), ("b", 2)]
    assert len(raw_records(tmp_path)) == 4
    assert next_attempts(raw_records(tmp_path)) == {"a": 3, "b": 3}


def test_order_is_that_of_the_plan_however_it_was_sharded(tmp_path):
    batches = [["c", "a"], ["b"], ["e", "d"]]
    for folder, shards in (("one", [[0, 1, 2]]), ("three", [[2], [1], [0]])):
        for shard, numbers in enumerate(shards):
            with RecordWriter(record_path(tmp_path / folder, shard, 0)) as writer:
                for n in numbers:
                    writer.append([_record(video, batch=n) for video in batches[n]])
    one, three = read_records(tmp_path / "one"), read_records(tmp_path / "three")
    assert _videos(one) == ["c", "a", "b", "e", "d"]
    assert one == three


def test_check_complete(tmp_path):
    batches = [["a", "b"], ["c"]]
    found = check_complete([_record("a"), _record("a"), _record("x")], batches)
    assert not found.ok
    assert found.missing == ("b", "c")
    assert found.duplicates == ("a",)
    assert found.unplanned == ("x",)
    # Done again on purpose is no duplicate.
    again = [_record("a"), _record("a", attempt=2), _record("b"), _record("c")]
    assert check_complete(again, batches).ok


def test_long_record_loses_its_trace_first():
    line = encode_record(
        _record(
            "a",
            trace={"loss": [0.123456789] * 10_000},
            error={"type": "E", "traceback": "short"},
        )
    )
    record = json.loads(line)
    assert len(line) <= MAX_LINE_BYTES
    assert record["trace"] == []
    assert record["error"]["traceback"] == "short"
    assert "too long" in record["notes"]["trace"]


def test_long_videos_lose_the_values_of_single_frames():
    reading = {"value": 0.1, "by": "lib 1", "per_frame": [0.123456789] * 10_000}
    line = encode_record(_record("a", metrics={"far": reading, "near": {"value": 2.0}}))
    record = json.loads(line)
    assert record["metrics"] == {"far": {"value": 0.1, "by": "lib 1"}, "near": {"value": 2.0}}
    assert "too long" in record["notes"]["metrics.per_frame"]
    short = json.loads(encode_record(_record("a", metrics={"far": {**reading, "per_frame": [1]}})))
    assert short["metrics"]["far"]["per_frame"] == [1]


def test_long_traceback_keeps_its_end():
    text = "é" * 40_000 + "ValueError: the end"
    line = encode_record(
        _record("a", error={"type": "E", "traceback": text}, notes={"metrics.psnr": "identical"})
    )
    record = json.loads(line)
    assert len(line) <= MAX_LINE_BYTES
    assert record["error"]["traceback"].endswith("ValueError: the end")
    assert len(record["error"]["traceback"]) > 8_000
    assert record["notes"]["metrics.psnr"] == "identical"
    assert "beginning left out" in record["notes"]["error.traceback"]


def test_too_long_without_anything_to_shorten_is_refused():
    with pytest.raises(StoreError, match=r"'a'.*longest field is 'seeds'"):
        encode_record(_record("a", seeds={"x": "y" * MAX_LINE_BYTES}, trace=[1, 2, 3]))


WRITER = """
import sys
from vcr_core.records import RecordWriter
path, name = sys.argv[1:]
with RecordWriter(path) as writer:
    for i in range(150):
        writer.append([
            {"video": f"{name}{i}-{j}", "batch": i, "attempt": 1, "notes": {"pad": name * 1700}}
            for j in range(2)
        ])
"""


def test_two_processes_append_to_one_file_without_tearing(tmp_path):
    path = record_path(tmp_path, 0, 0)
    children = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in ("a", "b")
    ]
    assert [child.wait(timeout=60) for child in children] == [0, 0]
    found = raw_records(tmp_path)
    assert len(found) == 600
    assert len(set(_videos(found))) == 600
    # The two records of a batch stay together.
    for first, second in zip(found[::2], found[1::2], strict=True):
        assert first["video"][:-1] == second["video"][:-1]


def test_hand_made_records_fit_the_schema(ten_records):
    for record in ten_records:
        assert validate_record(record).video == record["video"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"status": "fine"}, "status"),
        ({"attempt": 0}, "attempt"),
        ({"clean": {"pred": "cat"}}, r"clean\.pred"),
        ({"cost": {"t_attack_s": -1.0}}, r"cost\.t_attack_s"),
    ],
)
def test_schema_names_what_is_wrong(ten_records, change, message):
    with pytest.raises(msgspec.ValidationError, match=message):
        validate_record({**ten_records[0], **change})


def test_json_schema_describes_every_field():
    schema = json_schema()
    assert set(schema["$defs"]["Record"]["properties"]) == set(RECORD_FIELDS)
    assert "last ``attempt`` of a video counts" in schema["$defs"]["Record"]["description"]


def test_stable_part_leaves_out_what_differs_between_machines():
    record = _record(
        "a", shard=1, host="h", device="cpu", t_end="now",
        cost={"forwards": 3, "t_attack_s": 0.5, "mem_peak_bytes": 9},
    )  # fmt: skip
    assert stable_part(record) == {
        "video": "a", "batch": 0, "schema": 1, "cost": {"forwards": 3},
    }  # fmt: skip
    assert record["cost"]["t_attack_s"] == 0.5


def test_no_folder_of_records_is_no_records(tmp_path):
    assert store.read_records(tmp_path) == []


def test_details_are_left_out_on_request_and_nothing_else(tmp_path, ten_records):
    detailed = {
        **ten_records[0],
        "trace": [[1, 0.5, 0.5]],
        "seeds": {"attack": 1},
        "metrics": {"psnr": {"value": 40.0, "per_frame": [40.0]}, "old": 3.0},
    }
    failed = {**ten_records[8], "error": {"type": "E", "message": "m", "traceback": "long"}}
    with RecordWriter(record_path(tmp_path, 0, 0)) as writer:
        writer.append([detailed, failed])
    assert read_records(tmp_path) == [detailed, failed]
    first, second = read_records(tmp_path, details=False)
    assert first["metrics"] == {"psnr": {"value": 40.0}, "old": 3.0}
    assert second["error"] == {"type": "E", "message": "m"}
    assert first.keys() == detailed.keys() - {"trace", "seeds"}
    assert {k: v for k, v in first.items() if k != "metrics"} == {
        k: v for k, v in detailed.items() if k not in ("trace", "seeds", "metrics")
    }


def test_latest_are_copies(ten_records):
    (copy, *_) = latest(ten_records)
    copy["label"] = "changed"
    assert ten_records[0]["label"] == 0
