"""What is the same run and what is another one; folders that move; videos that change."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from vcr_core.manifest import read_manifest
from vcr_core.records import raw_records, read_records
from vcr_e2e.harness import assert_complete, essence, only_run
from vcr_e2e.videos import shapes_folder

RUN = ("run", "experiment.toml")
FILES = ("run", "--dataset", "folder", "--model", "toy-cnn", "--attack", "moody", "--eps", "4/255")


def names(results: str) -> set[str]:
    return {path.parent.name for path in Path(results).glob("*/run.json")}


def test_another_eps_is_another_run(vcr, reference):
    assert vcr(*RUN).code == 0
    assert vcr(*RUN, "--eps", "2/255").code == 0
    first, second = sorted(Path("results").glob("*/run.json"))
    assert {len(raw_records(path.parent)) for path in (first, second)} == {24}
    largest = {
        str(read_manifest(path.parent)["experiment"]["threat"]["eps"]): max(
            r["perturbation"]["linf"] for r in read_records(path.parent)
        )
        for path in (first, second)
    }
    assert sorted(round(255 * value) for value in largest.values()) == [2, 4]


def test_again_makes_nothing(vcr):
    assert vcr(*RUN, "--limit", "4").code == 0
    folder = only_run(Path("results"))
    before = {p: p.read_bytes() for p in folder.glob("records/*")}
    again = vcr(*RUN, "--limit", "4")
    assert again.code == 0
    assert {p: p.read_bytes() for p in folder.glob("records/*")} == before


def test_how_it_is_run_is_no_part_of_the_name(vcr, reference):
    options = ["runtime.batch_videos=5", "runtime.threads=2", "output.keep_clips=0"]
    sets = [word for option in options for word in ("--set", option)]
    folder = vcr(*RUN, "--plan", *sets).out.strip()
    assert Path(folder).name == reference.folder.name


def test_the_same_videos_elsewhere_are_the_same_run(vcr):
    shapes_folder(Path("here/videos"))
    shutil.copytree("here/videos", "there/deeper/clips")
    assert vcr(*FILES, "--set", "dataset.root=here/videos", "--results", "one").code == 0
    roots = [Path("there/deeper/clips"), Path("there/deeper/clips").absolute()]
    for number, root in enumerate(roots):
        results = f"other{number}"
        done = vcr(*FILES, "--set", f"dataset.root={root}", "--results", results)
        assert done.code == 0
        assert names(results) == names("one")
        assert essence(only_run(Path(results))) == essence(only_run(Path("one")))


def test_a_moved_results_folder_is_gone_on_with(vcr, reference):
    folder = Path(vcr(*RUN, "--plan").out.strip())
    assert vcr("run", folder, "--shard", "0/2").code == 0
    moved = Path("archive/of/last/year")
    moved.parent.mkdir(parents=True)
    shutil.move("results", moved)
    assert vcr("run", moved / folder.name).code == 0
    assert not Path("results").exists()
    assert_complete(moved / folder.name)
    assert essence(moved / folder.name) == reference.records
    # By the experiment it is found there too.
    assert vcr(*RUN, "--results", moved).code == 0
    assert len(raw_records(moved / folder.name)) == 24


def test_without_machine_toml_the_folder_still_works(vcr, reference):
    folder = Path(vcr(*RUN, "--plan").out.strip())
    (folder / "machine.toml").unlink()
    assert vcr("run", folder, "--set", "runtime.threads=1").code == 0
    assert essence(folder) == reference.records


def test_a_folder_of_another_experiment_is_refused(vcr):
    folder = vcr(*RUN, "--plan").out.strip()
    done = vcr("run", folder, "--set", "threat.eps=1/255")
    assert done.code != 0
    assert "belongs to another experiment" in done.err
    assert folder in done.err
    refused = vcr("run", folder, "--eps", "1/255")
    assert refused.code == 2
    assert "what it evaluates is fixed" in refused.err


def test_videos_that_changed_since_are_refused(vcr):
    shapes_folder(Path("videos"), size=34)
    files = (*FILES, "--set", "dataset.root=videos")
    assert vcr(*files).code == 0
    folder = only_run(Path("results"))
    video = read_records(folder)[1]["video"]
    before = Path("videos", video).read_bytes()
    Path("videos", video).write_bytes(before + b"\0")
    for command in (files, ("run", folder)):
        done = vcr(*command)
        assert done.code == 1
        assert f"video {video!r} is not the file that was evaluated" in done.err
        assert "use another results folder" in done.err
        assert "Traceback" not in done.err
    assert vcr(*files, "--results", "fresh").code == 0
    Path("videos", video).write_bytes(before)
    assert vcr(*files).code == 0
    Path("videos", video).unlink()
    gone = vcr("run", folder)
    assert gone.code == 1
    assert f"1 gone (first {video!r})" in gone.err


def test_a_video_that_is_new_is_another_run(vcr):
    shapes_folder(Path("videos"), directions=("east", "west"))
    files = (*FILES, "--set", "dataset.root=videos")
    assert vcr(*files).code == 0
    shapes_folder(Path("videos"), directions=("north",))
    assert vcr(*files).code == 0
    assert len(names("results")) == 2


def test_a_folder_that_is_no_run(vcr):
    Path("empty").mkdir()
    done = vcr("run", "empty")
    assert done.code == 2
    assert "empty" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("damage", ["{", '{"schema": 99}'])
def test_a_damaged_manifest_is_said(vcr, damage):
    folder = Path(vcr(*RUN, "--plan").out.strip())
    (folder / "run.json").write_text(damage)
    done = vcr("run", folder)
    assert done.code != 0
    assert "run.json" in done.err
    assert "Traceback" not in done.err


def test_a_torn_record_is_made_again(vcr, reference):
    """A crash of the machine can leave half a line; it costs its batch."""
    assert vcr(*RUN).code == 0
    folder = only_run(Path("results"))
    (part,) = folder.glob("records/*.jsonl")
    part.write_bytes(part.read_bytes()[:-100])
    assert vcr(*RUN).code == 0
    assert essence(folder) == reference.records
