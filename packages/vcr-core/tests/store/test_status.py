from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from vcr_core.cli.export import command as export
from vcr_core.cli.status import _left
from vcr_core.cli.status import command as status
from vcr_core.errors import StoreError
from vcr_core.manifest import write_manifest
from vcr_core.records import RecordWriter, record_path
from vcr_core.status import run_status, total_status

NOW = 1_800_000_000.0


def _invoke(command, *words):
    return CliRunner().invoke(command, [str(word) for word in words], catch_exceptions=False)


@pytest.fixture
def going_on(tmp_path, manifest, ten_records):
    """Make runs with six of ten records, one every 30 s, the last one 30 s ago."""

    def make(name, *, done=6, worker=True, host="node1", ago=30):
        folder = tmp_path / "sweep" / name
        write_manifest(folder, {**manifest, "run": name, "batch_videos": 1})
        with RecordWriter(record_path(folder, 0, 0)) as writer:
            for i, record in enumerate(ten_records[:done]):
                ended = datetime.fromtimestamp(NOW - ago - 30 * (done - 1 - i), UTC)
                writer.append([{**record, "run": name, "t_end": ended.isoformat()}])
        for path in (folder / "run.json", writer.path):
            os.utime(path, (NOW - ago, NOW - ago))
        if worker:
            said = {"batch": 2, "stage": "attack", "videos": ["v6"], "pid": 7, "since": NOW - 20}
            (folder / "logs").mkdir()
            (folder / "logs" / "flight-0of1.json").write_text(json.dumps({**said, "host": host}))
        return folder

    return make


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


def test_pace_and_time_left_while_somebody_works_on_a_run(going_on):
    found = run_status(going_on("r"), now=NOW)
    assert (found.done, found.total) == (6, 10)
    assert found.videos_per_h == pytest.approx(120)
    assert found.eta_s == pytest.approx(4 * 30)
    (worker,) = found.workers
    assert (worker.host, worker.stage, worker.since_s) == ("node1", "attack", 20)


def test_nothing_is_left_to_wait_for_where_nobody_works(going_on):
    found = run_status(going_on("r", worker=False, ago=7200), now=NOW)
    assert (found.state, found.workers, found.eta_s) == ("running", (), None)
    assert found.videos_per_h == pytest.approx(120)


def test_time_left_without_logs_while_records_are_fresh(going_on):
    assert run_status(going_on("r", worker=False), now=NOW).eta_s == pytest.approx(120)


def test_no_pace_from_one_moment(going_on):
    found = run_status(going_on("r", done=1), now=NOW)
    assert (found.videos_per_h, found.eta_s) == (None, None)


def test_total_of_several_runs(going_on, run_folder):
    folders = (going_on("a"), going_on("b", host="node2"), run_folder)
    total = total_status([run_status(folder, now=NOW) for folder in folders])
    assert total.runs == {"done": 1, "running": 2}
    assert (total.done, total.total) == (22, 30)
    assert total.errors == {"VideoReadError": 1}
    assert total.workers == {"node1": 1, "node2": 1}
    # Two runs side by side: twelve records in 150 s, of which the first two count as begin.
    assert total.videos_per_h == pytest.approx(240)
    assert total.eta_s == pytest.approx(8 * 15)


def test_total_of_nothing():
    total = total_status([])
    assert (total.done, total.total, total.idle_s, total.eta_s) == (0, 0, None, None)


def test_only_rates_that_are_asked_for(run_folder):
    assert list(run_status(run_folder, rates=("robust_accuracy",)).rates) == ["robust_accuracy"]


def test_damaged_run_is_reported_not_fatal(run_folder):
    (run_folder / "records" / "part-0-0.jsonl").write_bytes(b"{\n")
    found = run_status(run_folder)
    assert found.state == "unreadable"
    assert "part-0-0.jsonl:1" in found.problem


@pytest.mark.parametrize("what", ["part-0-0.jsonl", "."])
def test_what_may_not_be_read_is_reported_not_fatal(run_folder, monkeypatch, what):
    real = {"iterdir": Path.iterdir, "read_bytes": Path.read_bytes}

    def refuse(path, name):
        if path == run_folder / "records" / what:
            raise PermissionError("not yours")
        return real[name](path)

    for name in real:
        monkeypatch.setattr(Path, name, lambda path, name=name: refuse(path, name))
    found = run_status(run_folder)
    assert found.state == "unreadable"
    assert "cannot be read: not yours" in found.problem
    assert found.idle_s is not None


def test_status_table_in_a_pipe_is_tab_separated(run_folder):
    result = _invoke(status, run_folder.parent)
    assert result.exit_code == 0
    fields = result.stdout.rstrip("\n").split("\t")
    assert fields[:4] == ["r", "done", "10/10", "1 VideoReadError"]
    assert fields[4] == "77.8 % [45.3, 93.7]"
    assert fields[5] == "33.3 % [12.1, 64.6]"
    assert fields[6].endswith("ago")
    assert (len(fields), fields[7:]) == (10, ["", "", ""])


def test_pace_time_left_and_workers_in_a_pipe(going_on, run_folder, monkeypatch):
    monkeypatch.setattr("vcr_core.status.time.time", lambda: NOW)
    result = _invoke(status, going_on("a", host=None), going_on("b"), run_folder)
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert [line[0] for line in lines] == ["a", "b", "r"]
    assert lines[0][7:] == ["120", "2 min", "1"]
    assert lines[1][7:] == ["120", "2 min", "1 on node1"]
    # The total is for people: whoever reads lines wants runs.
    assert "total of 3 runs" in result.stderr
    assert "1 done, 2 running" in result.stderr


def test_terminal_shows_columns_that_have_something_and_the_total(
    going_on, run_folder, monkeypatch
):
    _on_a_terminal(monkeypatch)
    assert "workers" not in _invoke(status, run_folder).stdout
    assert "total" not in _invoke(status, run_folder).stdout
    shown = _invoke(status, going_on("a"), run_folder).stdout
    assert "workers" in shown
    assert "1 on node1" in shown
    assert "total of 2 runs" in shown


def test_many_runs_on_a_terminal(going_on, manifest, ten_records, monkeypatch):
    _on_a_terminal(monkeypatch)
    for number in range(45):
        folder = going_on(f"complete-{number}", done=10, worker=False)
        write_manifest(folder, {**manifest, "run": folder.name, "status": "done"})
    going_on("under-way")
    going_on("not-begun", done=0, worker=False)
    broken = going_on("broken", worker=False)
    (broken / "run.json").write_text("{")
    sweep = broken.parent
    result = _invoke(status, sweep)
    assert "complete-" not in result.stdout
    assert "not-begun" not in result.stdout
    assert "under-way" in result.stdout
    assert "unreadable" in result.stdout
    assert "total of 48 runs" in result.stdout
    assert "not shown: 45 complete and 1 not begun; --all shows every run" in result.stderr
    every = _invoke(status, sweep, "--all")
    assert every.stdout.count("complete-") == 45
    assert "not shown" not in every.stderr


def _on_a_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    for module in ("output", "status"):
        monkeypatch.setattr(f"vcr_core.cli.{module}.is_terminal", lambda: True)


def test_status_json(run_folder):
    data = json.loads(_invoke(status, run_folder.parent, run_folder, "--json").stdout)
    assert data["schema"] == 1
    # Named twice, shown once.
    (run,) = data["runs"]
    assert (run["run"], run["state"], run["complete"]) == ("r", "done", True)
    assert run["errors"] == {"VideoReadError": 1}
    assert run["problem"] is None
    assert (run["videos_per_h"], run["eta_s"], run["workers"]) == (None, None, [])
    assert data["total"]["runs"] == {"done": 1}
    assert (data["total"]["done"], data["total"]["total"]) == (10, 10)


def test_status_json_of_a_run_that_goes_on(going_on, monkeypatch):
    monkeypatch.setattr("vcr_core.status.time.time", lambda: NOW)
    data = json.loads(_invoke(status, going_on("a", host="elsewhere"), "--json").stdout)
    (run,) = data["runs"]
    assert (run["videos_per_h"], run["eta_s"]) == (120, 120)
    assert run["workers"] == [
        {
            "share": "0of1", "pid": 7, "host": "elsewhere", "batch": 2, "videos": 1,
            "stage": "attack", "since_s": 20,
        }
    ]  # fmt: skip
    assert (data["total"]["workers"], data["total"]["hosts"]) == (1, ["elsewhere"])
    assert "asr_untargeted" in run["rates"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""), (29, "< 1 min"), (90, "2 min"), (3599, "1 h 0 min"), (12_000, "3 h 20 min"),
        (90_000, "1 d 1 h"),
    ],
)  # fmt: skip
def test_time_left_in_two_units(seconds, text):
    assert _left(seconds) == text


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
