"""Tampered videos and the table of questions that VLMEvalKit reads, written and read back."""

from __future__ import annotations

import ast
import csv
import json
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from vcr_core.cli.export import command
from vcr_core.errors import UsageError
from vcr_core.export_vlmevalkit import COLUMNS, export_videos
from vcr_core.protocols import VideoItem
from vcr_core.video.reader import read
from vcr_core.video.sampling import whole_video

# Names that are no file names, that differ in signs only, and that are longer than a file system.
SOURCES = ["a/b", "a?b", "../up", "tab\tin\nside", "\u202etfel", "con", "x" * 300]


class Source:
    """A moving bar; the last frame of a tampered one is missing."""

    def __init__(self, frames, facts):
        self.name = "bar"
        self.frames = frames
        self.facts = facts

    def read(self, sampler):
        plan = sampler(len(self.frames))
        return SimpleNamespace(
            frames=self.frames[plan.distinct], fps=Fraction(10), facts=self.facts, plan=plan
        )

    def sha256(self):
        return None


def bar(count, height=33, width=47):
    frames = np.full((count, height, width, 3), 40, np.uint8)
    for i in range(count):
        frames[i, :, 3 * i : 3 * i + 12] = 200
    return frames


class Dataset:
    labels = None

    def ids(self):
        return [f"{source}#{kind}" for source in SOURCES for kind in ("original", "drop", "noise")]

    def item(self, video):
        source, _, kind = video.rpartition("#")
        told = {"type": kind} if kind == "original" else {"type": kind, "start_s": 0.5}
        made = Source(bar(10 if kind == "original" else 9), {"tamper": told})
        return VideoItem(video, 0, made, source, {"tamper": {"type": kind}})


@pytest.fixture
def exported(tmp_path):
    dataset = Dataset()
    paths = export_videos(dataset, dataset.ids(), tmp_path / "out", task="my set")
    assert [path.name for path in paths] == ["MVTamperBench.tsv", "videos.json"]
    with paths[0].open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return tmp_path / "out", rows, json.loads(paths[1].read_text(encoding="utf-8"))


def test_the_table_has_the_toolkits_columns(exported):
    _, rows, _ = exported
    assert list(rows[0]) == list(COLUMNS)
    assert [row["index"] for row in rows] == [str(i) for i in range(len(rows))]
    assert {row["tamper_type"] for row in rows} == {"original", "dropping", "noise"}
    for row in rows:
        # The toolkit evaluates the text of the options, and looks the answer up in them.
        assert ast.literal_eval(row["candidates"]) == ["Yes", "No"]
        assert row["answer"] == ("No" if row["tamper_type"] == "original" else "Yes")
        assert row["task_tamper_type"] == f"my set_{row['tamper_type']}"
        assert (row["data_type"], row["bound"], row["start"], row["end"]) == (
            "video", "False", "", "",
        )  # fmt: skip


def test_every_row_has_its_own_file_and_nothing_leaves_the_folder(exported):
    folder, rows, _ = exported
    files = [folder / row["prefix"] / row["video"] for row in rows]
    assert len(set(files)) == len(rows) == 3 * len(SOURCES)
    assert len({row["video"].lower() for row in rows}) == len(rows)
    for file in files:
        assert file.is_file()
        assert file.resolve().is_relative_to(folder.resolve() / "video" / "my-set")
        assert len(file.name) < 120


def test_files_read_back_with_every_frame(exported):
    folder, rows, _ = exported
    for row in rows:
        clip = read(folder / row["prefix"] / row["video"], whole_video)
        expected = bar(10 if row["tamper_type"] == "original" else 9)
        assert clip.n_decoded == len(expected)
        assert clip.fps == 10
        # Odd sides have one more row or column.
        assert clip.frames.shape[1:3] == (34, 48)
        seen = clip.frames[:, :33, :47].astype(int)
        assert np.abs(seen - expected).mean() < 4


def test_the_sidecar_leads_back_to_the_dataset(exported):
    _, rows, sidecar = exported
    ids = Dataset().ids()
    assert [entry["video"] for entry in sidecar["videos"]] == ids
    assert [entry["file"] for entry in sidecar["videos"]] == [
        row["prefix"] + row["video"] for row in rows
    ]
    assert sidecar["videos"][1]["source"] == "a/b"
    assert sidecar["videos"][1]["tamper"] == {"type": "drop", "start_s": 0.5}


def test_a_second_export_is_the_same(exported, tmp_path):
    folder, _, _ = exported
    dataset = Dataset()
    export_videos(dataset, dataset.ids(), tmp_path / "again", task="my set")
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix != ".mp4":
            again = tmp_path / "again" / path.relative_to(folder)
            assert again.read_bytes() == path.read_bytes()


def test_other_datasets_are_refused_before_anything_is_written(tmp_path):
    item = VideoItem("v", 0, Source(bar(10), {}))
    dataset = SimpleNamespace(item=lambda _video: item, labels=None, ids=lambda: ["v"])
    with pytest.raises(UsageError, match="vcr run --dataset tamper"):
        export_videos(dataset, ["v"], tmp_path / "out", task="x")
    with pytest.raises(UsageError, match="no video"):
        export_videos(dataset, [], tmp_path / "out", task="x")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("runs", "output", "message"),
    [
        (1, [], "--format vlmevalkit needs --output FOLDER"),
        (2, ["--output", "kit"], "that of one run, 2 were given"),
    ],
)
def test_the_command_says_what_it_needs(tmp_path, runs, output, message):
    for number in range(runs):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "run.json").write_text("{}")
    found = CliRunner().invoke(command, [str(tmp_path), "--format", "vlmevalkit", *output])
    assert isinstance(found.exception, UsageError)
    assert message in str(found.exception)
