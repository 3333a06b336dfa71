"""Bad files among good ones: the good rows are as without them, each bad one is a record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from vcr_core.record_schema import stable_part
from vcr_core.records import read_records
from vcr_e2e.harness import assert_complete, essence, only_run
from vcr_e2e.videos import files, shape

OPTIONS = (
    "--model", "toy-cnn", "--attack", "moody", "--eps", "4/255",
    "--set", "metrics.names=['mse']", "--set", "runtime.batch_videos=4",
    "--set", "runtime.threads=1",
)  # fmt: skip


def good_videos(root: Path) -> list[tuple[str, str]]:
    """Write videos that can be evaluated, however odd they are."""
    shape(root / "plain.mkv", "east")
    shape(root / "square.mkv", "north", "square")
    shape(root / "lossy.mp4", "west", size=64, codec="libx264", pix_fmt="yuv420p")
    shape(root / "odd-size.mkv", "south", size=33)
    shape(root / "rotated.mp4", "east", size=64, codec="libx264", pix_fmt="yuv420p", rotation=90)
    times = [40 * i + (15 if i % 3 else 0) for i in range(12)]
    shape(root / "variable rate.mkv", "north", codec="libx264", pix_fmt="yuv444p", times=times)
    shape(root / "vidéo 視頻, n°1 🎬.mkv", "west")
    files.encode(root / "one frame.mkv", 1, codec="ffv1", pix_fmt="bgr0", size=(32, 32))
    return [
        ("plain.mkv", "east"),
        ("square.mkv", "north"),
        ("lossy.mp4", "west"),
        ("odd-size.mkv", "south"),
        ("rotated.mp4", "east"),
        ("variable rate.mkv", "north"),
        ("vidéo 視頻, n°1 🎬.mkv", "west"),
        ("one frame.mkv", "south"),
    ]


def bad_videos(root: Path) -> list[tuple[str, str]]:
    (root / "empty.mp4").write_bytes(b"")
    files.cut(root / "cut.mp4", root / "lossy.mp4", 0.5)
    files.audio_only(root / "audio only.mkv")
    (root / "text.mp4").write_text("this is no video")
    (root / "a folder.mp4").mkdir()
    return [
        ("missing.mp4", "east"),
        ("empty.mp4", "north"),
        ("cut.mp4", "west"),
        ("audio only.mkv", "south"),
        ("text.mp4", "east"),
        ("a folder.mp4", "north"),
    ]


def write_list(path: str, rows: Sequence[tuple[str, str]]) -> str:
    lines = [f'"{name}",{label}' for name, label in rows]
    Path(path).write_text("path,label\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def lists(here: Path) -> dict[str, Any]:
    root = here / "videos"
    root.mkdir()
    good, bad = good_videos(root), bad_videos(root)
    return {
        "root": root,
        "bad": [name for name, _ in bad],
        "only good": write_list("good.csv", good),
        "all": write_list("all.csv", [*good, *bad]),
    }


def command(file: str, *more: str) -> tuple[str, ...]:
    sets = ("--set", f"dataset.file={file}", "--set", "dataset.root=videos")
    return ("run", "--dataset", "csv", *sets, *OPTIONS, *more)


def rows(results: str) -> dict[str, dict[str, Any]]:
    return {record["video"]: record for record in read_records(only_run(Path(results)))}


def test_good_rows_are_as_without_the_bad_ones(vcr, lists):
    # Other batches give other last bits, which the sign of a gradient would make visible.
    search = ("--attack", "toy-search")
    alone = vcr(*command(lists["only good"], *search, "--results", "alone"))
    assert alone.code == 0, alone.err
    mixed = vcr(*command(lists["all"], *search, "--results", "mixed"))
    assert mixed.code == 1
    assert "6 of 14 videos failed" in mixed.err
    assert "--retry-errors" in mixed.err
    assert "Traceback" not in mixed.err
    assert_complete(only_run(Path("mixed")))
    good, found = rows("alone"), rows("mixed")
    assert {r["status"] for r in good.values()} <= {"ok", "ineligible"}
    assert sum(r["status"] == "ok" for r in good.values()) >= 6
    assert set(found) == {*good, *lists["bad"]}
    for video, record in good.items():
        other = found[video]
        assert other["status"] == record["status"]
        assert other["input"] == record["input"]
        for corner in ("clean", "attacked"):
            assert other[corner]["pred"] == record[corner]["pred"]
            assert other[corner]["p_label"] == pytest.approx(record[corner]["p_label"], abs=1e-5)
        assert other.get("perturbation") == pytest.approx(record.get("perturbation"), abs=1e-4)
    for video in lists["bad"]:
        record = found[video]
        assert record["status"] == "error", video
        assert record["error"]["stage"] == "decode"
        assert str(lists["root"] / video) in record["error"]["message"]
        assert record["label"] is not None
        assert "clean" not in record


def test_alone_in_their_batches_rows_are_equal_bit_for_bit(vcr, lists):
    one = ("--set", "runtime.batch_videos=1")
    assert vcr(*command(lists["only good"], *one, "--results", "alone")).code == 0
    assert vcr(*command(lists["all"], *one, "--results", "mixed")).code == 1
    found = rows("mixed")
    for video, record in rows("alone").items():
        kept = [{**stable_part(r), "run": "", "batch": 0} for r in (record, found[video])]
        assert kept[0] == kept[1]


@pytest.mark.parametrize(
    ("allowed", "code"), [("0", 1), ("0.4", 1), ("0.45", 0), ("5", 1), ("6", 0)]
)
def test_the_error_budget(vcr, lists, allowed, code):
    done = vcr(*command(lists["all"], "--max-errors", allowed))
    assert done.code == code, done.err
    if code == 0:
        assert "error:" not in done.err
        assert vcr("status", "results").out.split("\t")[1:4] == [
            "done",
            "14/14",
            "6 VideoReadError",
        ]


def test_mended_files_are_done_again_and_no_others(vcr, lists):
    assert vcr(*command(lists["all"])).code == 1
    folder = only_run(Path("results"))
    before = {r["video"]: r for r in read_records(folder)}
    for video, direction in (("empty.mp4", "north"), ("missing.mp4", "east")):
        (lists["root"] / video).unlink(missing_ok=True)
        shape(lists["root"] / video, direction, codec="libx264", pix_fmt="yuv420p")
    plain = vcr("run", folder)
    assert plain.code == 1
    assert rows("results") == before
    again = vcr("run", folder, "--retry-errors", "--max-errors", "4")
    assert again.code == 0, again.err
    after = rows("results")
    touched = {r["batch"] for v, r in before.items() if r["status"] == "error"}
    assert {r["batch"] for r in after.values() if r["attempt"] == 2} == touched
    for video in ("empty.mp4", "missing.mp4"):
        assert (after[video]["status"], after[video]["attempt"]) == ("ok", 2)
    untouched = {v: r for v, r in before.items() if r["batch"] not in touched}
    assert untouched.items() <= after.items()
    # What was mended counts as it is now: another change is refused.
    path = lists["root"] / "missing.mp4"
    path.write_bytes(path.read_bytes() + b"\0")
    refused = vcr("run", folder)
    assert refused.code == 1
    assert "'missing.mp4' is not the file that was evaluated" in refused.err


def test_one_mended_file_makes_its_batch_again(vcr, lists):
    write_list("two.csv", [("plain.mkv", "east"), ("missing.mp4", "east")])
    one = ("--set", "runtime.batch_videos=1", "--max-errors", "1")
    assert vcr(*command("two.csv", *one)).code == 0
    shape(lists["root"] / "missing.mp4", "east", codec="libx264", pix_fmt="yuv420p")
    assert vcr("run", only_run(Path("results")), "--retry-errors").code == 0
    assert {v: r["attempt"] for v, r in rows("results").items()} == {
        "plain.mkv": 1, "missing.mp4": 2
    }  # fmt: skip


def test_a_folder_with_bad_files(vcr, lists):
    root = Path("classes")
    for direction in ("east", "west"):
        shape(root / direction / "good é.mkv", direction)
        (root / direction / "empty.mp4").write_bytes(b"")
    (root / "west" / "notes.txt").write_text("not a video, not in the list")
    done = vcr(
        "run", "--dataset", "folder", "--set", f"dataset.root={root}", *OPTIONS,
        "--max-errors", "0.5",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert {v: r["status"] for v, r in rows("results").items()} == {
        "east/good é.mkv": "ok", "east/empty.mp4": "error",
        "west/good é.mkv": "ok", "west/empty.mp4": "error",
    }  # fmt: skip


def test_all_bad_is_said_with_the_reason(vcr, here):
    write_list("none.csv", [(f"{i}.mp4", "east") for i in range(40)])
    done = vcr(*command("none.csv", "--set", f"dataset.root={here}"))
    assert done.code == 1
    assert "the first 32 videos all failed" in done.err
    assert "VideoReadError" in done.err


def test_exported_rows_hold_every_video(vcr, lists):
    vcr(*command(lists["all"]))
    table = vcr("export", "results", "--format", "csv")
    assert table.code == 0
    assert "vidéo 視頻, n°1 🎬.mkv" in table.out
    assert len(table.out.strip().splitlines()) == 15
    assert essence(only_run(Path("results")))
