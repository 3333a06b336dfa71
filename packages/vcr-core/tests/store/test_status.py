from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner
from vcr_core.cli.export import command as export
from vcr_core.cli.status import command as status
from vcr_core.errors import StoreError
from vcr_core.manifest import write_manifest
from vcr_core.records import RecordWriter, record_path
from vcr_core.status import run_status


def _invoke(command, *words):
    return CliRunner().invoke(command, [str(word) for word in words], catch_exceptions=False)


def test_status_of_a_finished_run(run_folder):
    found = run_status(run_folder)
    assert (found.state, found.done, found.total) == ("done", 10, 10)
    assert found.is_complete
    assert found.counts == {"error": 1, "ineligible": 2, "ok": 7}
    assert found.errors == {"VideoReadError": 1}
    assert (found.rates["robust_accuracy"]["k"], found.rates["robust_accuracy"]["n"]) == (3, 9)


def test_status_while_a_record_is_being_written(tmp_path, manifest, ten_records):
    folder = tmp_path / "r"
    write_manifest(folder, manifest)
    assert run_status(folder).done == 0
    with RecordWriter(record_path(folder, 0, 0)) as writer:
        writer.append(ten_records[:4])
        with writer.path.open("ab") as file:
            file.write(b'{"video": "v4", "bat')
        found = run_status(folder)
    assert (found.state, found.done, found.total) == ("running", 4, 10)
    assert found.rates["clean_accuracy"]["n"] == 4


def test_last_write_and_idle_time(run_folder):
    newest = max(p.stat().st_mtime for p in run_folder.rglob("*.json*"))
    found = run_status(run_folder, now=newest + 90)
    assert found.idle_s == pytest.approx(90, abs=0.1)
    assert found.last_write.endswith("Z")


def test_damaged_run_is_reported_not_fatal(run_folder):
    (run_folder / "records" / "part-0-0.jsonl").write_bytes(b"{\n")
    found = run_status(run_folder)
    assert found.state == "unreadable"
    assert "part-0-0.jsonl:1" in found.problem


def test_status_table_in_a_pipe_is_tab_separated(run_folder):
    result = _invoke(status, run_folder.parent)
    assert result.exit_code == 0
    fields = result.stdout.rstrip("\n").split("\t")
    assert fields[:4] == ["r", "done", "10/10", "1 VideoReadError"]
    assert fields[4] == "77.8 % [45.3, 93.7]"
    assert fields[5] == "33.3 % [12.1, 64.6]"
    assert fields[6].endswith("ago")


def test_status_json(run_folder):
    data = json.loads(_invoke(status, run_folder.parent, run_folder, "--json").stdout)
    assert data["schema"] == 1
    # Named twice, shown once.
    (run,) = data["runs"]
    assert (run["run"], run["state"], run["complete"]) == ("r", "done", True)
    assert run["errors"] == {"VideoReadError": 1}
    assert run["problem"] is None


def test_status_shows_other_runs_beside_a_damaged_one(run_folder):
    broken = run_folder.parent / "broken"
    broken.mkdir()
    (broken / "run.json").write_text("{")
    result = _invoke(status, run_folder.parent)
    assert [line.split("\t")[:2] for line in result.stdout.splitlines()] == [
        ["broken", "unreadable"], ["r", "done"],
    ]  # fmt: skip
    assert "cannot be read" in result.stderr


def test_status_default_folder(run_folder, monkeypatch):
    monkeypatch.chdir(run_folder.parent.parent)
    assert _invoke(status).stdout.startswith("r\tdone")
    monkeypatch.chdir(run_folder)
    with pytest.raises(StoreError, match="no folder 'results' here"):
        _invoke(status)


def test_status_of_an_empty_folder(tmp_path):
    result = _invoke(status, tmp_path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no runs yet" in result.stderr


def test_export_writes_data_to_stdout_and_nothing_else(run_folder):
    before = sorted(p.name for p in run_folder.rglob("*"))
    result = _invoke(export, run_folder, "--format", "vcrbench")
    assert result.exit_code == 0
    assert result.stdout.startswith("video_name,gt_label")
    assert result.stderr == ""
    assert before == sorted(p.name for p in run_folder.rglob("*"))


def test_export_to_a_file(run_folder, tmp_path):
    out = tmp_path / "records.csv"
    result = _invoke(export, run_folder.parent, "--output", out)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "records.csv" in result.stderr
    assert len(out.read_text().splitlines()) == 11


def test_export_of_nothing(tmp_path):
    with pytest.raises(StoreError, match="no runs in"):
        _invoke(export, tmp_path)


def test_export_refuses_unknown_format(run_folder):
    result = _invoke(export, run_folder, "--format", "xlsx")
    assert result.exit_code == 2
    assert "'xlsx' is not one of" in result.stderr


@pytest.mark.parametrize("command", [status, export])
def test_help_has_an_example(command):
    assert re.search(r"Examples?:\s+vcr ", _invoke(command, "--help").output)
