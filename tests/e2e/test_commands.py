"""The commands around a run: again, by folder, sweeps, status, report, export, exit codes."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from vcr_core.records import raw_records, read_records
from vcr_e2e.harness import EXPERIMENT, essence, only_run
from vcr_e2e.videos import shapes_folder

RUN = ("run", "experiment.toml", "--limit", "4")
SWEEP = (
    EXPERIMENT
    + """
[matrix]
attack = ["none", "moody", "toy-search"]
defense = ["none", "toy-opaque"]
"""
)


@pytest.fixture
def finished(vcr) -> Path:
    assert vcr(*RUN).code == 0
    return only_run(Path("results"))


class TestRun:
    def test_prints_a_row_and_where_the_records_are(self, vcr):
        done = vcr(*RUN)
        assert done.code == 0
        head, row = done.out.splitlines()
        assert dict(zip(head.split("\t"), row.split("\t"), strict=True))["n"] == "4"
        assert "records: results/" in done.err

    def test_json(self, vcr):
        done = vcr(*RUN, "--json")
        assert done.json["status"] == "done"
        assert done.json["exit_code"] == 0
        assert (Path(done.json["folder"]) / "run.json").is_file()
        assert done.json["summary"]["definitions"]["clean_accuracy"]["n"] == 4

    def test_by_folder_does_what_is_missing(self, vcr, finished):
        before = raw_records(finished)
        assert vcr("run", finished).code == 0
        assert raw_records(finished) == before
        (part,) = finished.glob("records/*")
        part.write_bytes(part.read_bytes().splitlines(keepends=True)[0])
        assert vcr("run", finished).code == 0
        assert len(read_records(finished)) == 4

    def test_quiet_says_nothing_on_stderr(self, vcr):
        done = vcr(*RUN, "-q", "--json")
        assert done.err.replace(f"records: {done.json['folder']}\n", "") == ""

    def test_a_closed_pipe_is_no_error(self, finished):
        program = f"{sys.executable} -m vcr_core"
        done = subprocess.run(
            ["bash", "-c", f"{program} export {finished} --format json | head -c 20"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert len(done.stdout) == 20
        assert "Traceback" not in done.stderr

    def test_the_installed_command(self, start):
        command = Path(sys.executable).with_name("vcr")
        done = subprocess.run([command, "--version"], capture_output=True, text=True, check=False)
        assert done.returncode == 0
        assert done.stdout.startswith("vcr, version")


class TestSweep:
    @pytest.fixture(autouse=True)
    def file(self, here: Path) -> None:
        (here / "sweep.toml").write_text(SWEEP)

    def test_dry_then_real_then_again(self, vcr):
        dry = vcr("sweep", "sweep.toml", "--limit", "2", "--dry-run", "--json")
        assert dry.code == 0
        assert not Path("results").exists()
        planned = dry.json["combinations"]
        assert len(planned) == 6
        impossible = [c for c in planned if not c["possible"]]
        # A white-box attack that knows of a defense without a gradient.
        assert [c["values"] for c in impossible] == [{"attack": "moody", "defense": "toy-opaque"}]
        assert "attacker_knows_defense" in impossible[0]["problem"]
        real = vcr("sweep", "sweep.toml", "--limit", "2", "--json")
        assert real.code == 0, real.err
        runs = real.json["runs"]
        assert len({run["run"] for run in runs}) == 5
        assert "skipped: attack = moody, defense = toy-opaque" in real.err
        before = {run["folder"]: essence(Path(run["folder"])) for run in runs}
        assert all(len(records) == 2 for records in before.values())
        again = vcr("sweep", "sweep.toml", "--limit", "2", "--json")
        assert again.code == 0
        assert {r["folder"]: essence(Path(r["folder"])) for r in again.json["runs"]} == before
        assert {len(raw_records(Path(folder))) for folder in before} == {2}

    def test_one_failing_run_does_not_stop_the_others(self, vcr, monkeypatch):
        videos = vcr("run", "experiment.toml", "--limit", "2", "--plan", "--results", "plan").out
        ids = json.loads((Path(videos.strip()) / "run.json").read_text())["batches"][0]
        monkeypatch.setenv("VCR_E2E_TROUBLE", f"raise {' '.join(ids)}")
        done = vcr("sweep", "sweep.toml", "--limit", "2", "--json")
        assert done.code == 1
        assert done.json["exit_code"] == 1
        assert len(done.json["runs"]) == 5
        assert done.err.count("2 of 2 videos failed") == 1

    def test_nothing_possible(self, vcr):
        done = vcr(
            "sweep", "sweep.toml", "--attack", "moody", "--defense", "toy-opaque", "--limit", "2"
        )
        assert done.code == 2
        assert "no combination of this sweep can run" in done.err


class TestStatus:
    def test_while_running(self, start, vcr, reference):
        process = start("run", "experiment.toml", VCR_E2E_DELAY="0.4")
        process.wait_until(lambda: list(process.folder.glob("*/records/*.jsonl")))
        process.wait_until(lambda: read_records(process.run))
        seen = vcr("status", "results", "--json")
        assert seen.code == 0
        (run,) = seen.json["runs"]
        assert run["state"] == "running"
        assert 0 < run["done"] < run["total"] == 24
        report = vcr("report", "results", "--json")
        assert (report.code, len(report.json["runs"])) == (0, 1)
        assert process.end().code == 0
        assert vcr("status", "results", "--json").json["runs"][0]["done"] == 24
        assert essence(only_run(Path("results"))) == reference.records


class TestAfterwards:
    @pytest.mark.parametrize("form", ["terminal", "md", "csv"])
    def test_report(self, vcr, finished, form):
        done = vcr("report", "results", "--format", form)
        assert done.code == 0
        assert "toy-cnn" in done.out

    def test_report_html(self, vcr, finished):
        done = vcr("report", "results", "--format", "html", "--output", "page.html")
        assert (done.code, done.out) == (0, "page.html\n")
        assert "toy-cnn" in Path("page.html").read_text(encoding="utf-8")

    def test_export_csv_and_json(self, vcr, finished):
        rows = list(csv.DictReader(io.StringIO(vcr("export", finished, "--format", "csv").out)))
        assert [row["video"] for row in rows] == [r["video"] for r in read_records(finished)]
        assert len(json.loads(vcr("export", finished, "--format", "json").out)) >= 1

    def test_export_parquet(self, vcr, finished):
        parquet = pytest.importorskip("pyarrow.parquet")
        assert vcr("export", finished, "--format", "parquet", "-o", "rows.parquet").code == 0
        assert parquet.read_table("rows.parquet").num_rows == 4

    def test_export_vcrbench(self, vcr, finished):
        done = vcr("export", finished, "--format", "vcrbench", "-o", "bench/")
        assert done.code == 0, done.err
        files = [path for path in Path("bench").rglob("*") if path.is_file()]
        assert files
        with files[0].open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        assert (len(rows), len(rows[0])) == (5, 20)

    def test_all_bad_words(self, vcr):
        for command in (("report", "nowhere"), ("export", "nowhere"), ("status", "nowhere")):
            done = vcr(*command)
            assert done.code != 0, command
            assert "nowhere" in done.err
            assert "Traceback" not in done.err


class TestMistakes:
    """Every message names what is wrong and what to do; no traceback unless asked for."""

    @pytest.mark.parametrize(
        ("words", "code", "said"),
        [
            (("--model", "toy-cn"), 2, "toy-cnn"),
            (("--attack", "moodie"), 2, "moody"),
            (("--dataset", "toy_shape"), 2, "toy-shapes"),
            (("--set", "attack.stepz=3"), 2, "attack"),
            (("--set", "threat.epz=3"), 2, "did you mean 'eps'"),
            (("--eps", "eight"), 2, "eight"),
            (("--eps", "-1/255"), 2, "threat.eps"),
            (("--limit", "0"), 2, "--limit"),
            (("--set", "runtime.device=quantum"), 2, "quantum"),
            (("--set", "runtime.device=cuda:99"), 3, "cuda:99"),
            (("--set", "attack.name=square", "--set", "attack.x=1"), 2, "attack"),
            (("--bogus",), 2, "--bogus"),
        ],
    )
    def test_in_an_experiment(self, vcr, words, code, said):
        done = vcr("run", "experiment.toml", *words)
        assert done.code == code, done.err
        assert done.out == ""
        assert said in done.err
        assert "error: " in done.err
        assert "Traceback" not in done.err

    def test_a_device_that_is_not_here_with_workers(self, vcr):
        done = vcr("run", "experiment.toml", "--workers=1", "--set", "runtime.device=cuda:99")
        assert done.code == 3
        assert "cuda:99" in done.err
        assert "Traceback" not in done.err

    def test_debug_shows_the_traceback(self, vcr):
        done = vcr("run", "experiment.toml", "--model", "toy-cn", "--debug")
        assert done.code == 2
        assert "Traceback" in done.err

    def test_a_file_that_is_not_there(self, vcr):
        done = vcr("run", "experimant.toml")
        assert done.code == 2
        assert "experimant.toml" in done.err

    def test_a_file_that_is_no_toml(self, vcr):
        Path("bad.toml").write_text("[model\nname=")
        done = vcr("run", "bad.toml")
        assert done.code == 2
        assert "bad.toml" in done.err

    def test_an_empty_dataset(self, vcr):
        Path("videos/east").mkdir(parents=True)
        done = vcr("run", "--dataset", "folder", "--set", "dataset.root=videos", "--model",
                   "toy-cnn", "--attack", "none")  # fmt: skip
        assert done.code == 2
        assert "holds no video" in done.err
        assert not Path("results").exists()

    def test_labels_that_do_not_match(self, vcr):
        shapes_folder(Path("videos"), directions=("east",))
        Path("videos/east").rename("videos/juggling")
        done = vcr("run", "--dataset", "folder", "--set", "dataset.root=videos", "--model",
                   "toy-cnn", "--attack", "none")  # fmt: skip
        assert done.code == 2
        assert "juggling" in done.err
        assert "south-east" in done.err

    def test_nothing_to_attack(self, vcr):
        """Labels of the opposite direction: the model is wrong before any attack."""
        shapes_folder(Path("videos"), directions=("east", "west"))
        Path("videos/east").rename("videos/other")
        Path("videos/west").rename("videos/east")
        Path("videos/other").rename("videos/west")
        done = vcr("run", "--dataset", "folder", "--set", "dataset.root=videos", "--model",
                   "toy-cnn", "--attack", "moody", "--json")  # fmt: skip
        assert done.code == 0
        rates = done.json["summary"]["definitions"]
        assert rates["clean_accuracy"]["value"] == 0
        assert rates["asr_untargeted"]["value"] is None
        assert {r["status"] for r in read_records(only_run(Path("results")))} == {"ineligible"}


class TestPlugins:
    def test_disabled_ones_are_not_there(self, start):
        done = start(*RUN, VCR_DISABLE_PLUGINS="vcr-e2e").end()
        assert done.code == 2
        assert "moody" in done.err
        assert "Traceback" not in done.err

    def test_a_run_goes_on_without_plugins_it_does_not_name(self, vcr, monkeypatch):
        from vcr_core.plugins import reset_registry

        monkeypatch.setenv("VCR_DISABLE_PLUGINS", "vcr-e2e, vcr-models,vcr_attacks")
        reset_registry()
        try:
            done = vcr(*RUN, "--attack", "toy-descent")
        finally:
            monkeypatch.undo()
            reset_registry()
        assert done.code == 0, done.err

    def test_strict_refuses_to_run_with_a_broken_one(self, start, here, monkeypatch):
        folder = here / "broken"
        info = folder / "vcr_acme-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vcr-acme\nVersion: 1\n")
        (info / "entry_points.txt").write_text("[vcr]\nacme = vcr_acme_missing\n")
        from os import environ, pathsep

        path = f"{folder}{pathsep}{environ['PYTHONPATH']}"
        strict = start(*RUN, PYTHONPATH=path, VCR_STRICT_PLUGINS="1").end()
        assert strict.code == 3
        assert "vcr-acme" in strict.err
        assert "Traceback" not in strict.err
        assert not Path("results").exists()
        lenient = start(*RUN, PYTHONPATH=path).end()
        assert lenient.code == 0
        assert "vcr-acme" in lenient.err
        run = json.loads((only_run(Path("results")) / "run.json").read_text())
        assert [f["distribution"] for f in run["plugin_failures"]] == ["vcr-acme"]
