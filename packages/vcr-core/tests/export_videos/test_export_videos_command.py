"""``vcr export --videos`` as a user types it."""

from __future__ import annotations

import json

import pytest
from vcr_core.cli import main


@pytest.fixture
def vcr(capsys):
    def run(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run


@pytest.fixture
def run(vcr, tmp_path):
    results = tmp_path / "results"
    code, _, err = vcr(
        "run", "--model", "toy-cnn", "--dataset", "toy-shapes", "--attack", "toy-descent",
        "--eps", "8/255", "--limit", 2, "--results", results,
    )  # fmt: skip
    assert code == 0, err
    [folder] = [path.parent for path in results.glob("*/run.json")]
    return folder


def test_write_check_and_find_a_lie(run, vcr, tmp_path):
    out = tmp_path / "videos"
    code, printed, err = vcr("export", run, "--videos", out, "--preview", "gif", "--limit", 1)
    assert (code, printed) == (0, "")
    assert "adversarial.mkv, side-by-side_preview.gif, difference_preview.gif" in err
    code, printed, err = vcr("export", run, "--videos", out, "--check")
    assert code == 0
    assert "all 2 predictions are those of the records" in err
    lines = [line.split("\t") for line in printed.splitlines()]
    assert [(line[2], line[3], line[6]) for line in lines] == [
        ("clean", "bare", "same"), ("adversarial", "bare", "same"),
    ]  # fmt: skip
    assert lines[1][4] == lines[1][5]
    [records] = (run / "records").glob("*.jsonl")
    text = records.read_text()
    first = json.loads(text.splitlines()[0])
    first["attacked"]["pred"] = (first["attacked"]["pred"] + 1) % 8
    records.write_text("\n".join([json.dumps(first), *text.splitlines()[1:]]) + "\n")
    code, printed, err = vcr("export", run, "--videos", out, "--check", "--json")
    assert code == 1
    assert "1 of 2 predictions are not" in err
    answers = json.loads(printed)["answers"]
    assert [answer["verdict"] for answer in answers] == ["same", "differs"]


def test_clean_runs_of_a_sweep_are_left_out(run, vcr, tmp_path):
    out = tmp_path / "videos"
    clean = ("run", "--model", "toy-cnn", "--dataset", "toy-shapes", "--limit", 1)
    assert vcr(*clean, "--results", run.parent)[0] == 0
    assert len(list(run.parent.glob("*/run.json"))) == 2
    code, _, err = vcr("export", run.parent, "--videos", out, "--preview", "none")
    assert code == 0
    assert "attacks nothing and is left out" in err
    assert vcr("export", run.parent, "--videos", out, "--check")[0] == 0
    assert [path.name for path in out.iterdir()] == [run.name]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--check"], "need --videos"),
        (["--recreate"], "need --videos"),
        (["--only", "x"], "need --videos"),
        (["--videos", "o", "--format", "csv"], "excludes --format"),
        (["--videos", "o", "--output", "x"], "excludes --format"),
        (["--videos", "o", "--json"], "--json needs --check"),
        (["--videos", "o", "--check", "--recreate"], "leave out"),
        (["--videos", "o", "--preview", "none", "--preview", "gif"], "excludes other previews"),
        (["--videos", "o", "--only", "nothing"], "no video 'nothing'"),
        (["--videos", "o", "--check"], None),
    ],
)
def test_wrong_usage(arguments, word, run, vcr, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, printed, err = vcr("export", run, *arguments)
    assert (code, printed) == (2 if word else 1, "")
    assert (word or "export some first") in err
    assert not (tmp_path / "o").exists()
