"""An honest run passes every check; each way of tampering with it fails the one it should."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from vcr_core.cli import main
from vcr_core.config.identity import run_id
from vcr_core.config.resolve import resolve_run
from vcr_core.leaderboard.checks import Verification
from vcr_core.leaderboard.content import content_of
from vcr_core.leaderboard.verify import verify_run
from vcr_core.records import read_records
from vcr_core.summary import write_summary

Edit = Callable[[Path, Callable[[dict[str, Any]], None]], None]


def failed(found: Verification) -> dict[str, str]:
    return {check.name: check.detail for check in found.failed}


def test_an_honest_run_passes_and_repeats_bit_for_bit(run: Path) -> None:
    before = {path: path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}
    found = verify_run(run, rerun=3)
    assert [check.name for check in found.checks if check.outcome == "passed"] == [
        "files", "manifest", "records-schema", "configuration", "identity", "coverage",
        "consistency", "threat", "summary", "clips", "versions", "rerun",
    ]  # fmt: skip
    assert found.checks[-1].detail == "4 videos give the same records, bit for bit"
    assert (found.rerun, found.state) == (4, "re-run")
    assert {path: path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()} == before


def test_an_attack_on_another_model_is_verified_like_any_other(
    run: Path, tmp_path: Path, edit: Edit
) -> None:
    options = ("--set", "model=toy-batch-norm", "--set", "source=toy-cnn", "-q")
    made = tmp_path / "transfer"
    assert main(["run", str(run / "resolved.toml"), *options, "--results", str(made)]) == 0
    (folder,) = made.iterdir()
    found = verify_run(folder, rerun=3)
    assert failed(found) == {}
    outcomes = {check.name: check.outcome for check in found.checks}
    assert outcomes["identity"] == outcomes["consistency"] == outcomes["rerun"] == "passed"

    def better(record: dict[str, Any]) -> None:
        record["source"]["attacked"]["pred"] = record["source"]["label"]

    edit(folder, better)
    assert "success on the source" in failed(verify_run(folder))["consistency"]


def test_a_changed_prediction_contradicts_the_rest_of_its_record(run: Path, edit: Edit) -> None:
    def better(record: dict[str, Any]) -> None:
        record["attacked"]["pred"] = record["label"]

    edit(run, better)
    found = failed(verify_run(run))
    assert {"consistency", "summary"} <= set(found)
    assert "success is given as" in found["consistency"] or "margin" in found["consistency"]


def test_a_well_forged_prediction_is_found_by_evaluating_it_again(run: Path, edit: Edit) -> None:
    def forge(record: dict[str, Any]) -> None:
        won = {"pred": record["label"], "p_label": 0.9, "p_pred": 0.9, "margin": 2.0}
        record["attacked"] |= {**won, "top5": [record["label"]]}
        record["success"] = {"changed": False, "n": 0, "of": 1, "any_query": False}

    edit(run, forge)
    shutil.rmtree(run / "artifacts")
    write_summary(run)
    assert failed(verify_run(run)) == {}
    found = failed(verify_run(run, rerun=6))
    assert set(found) == {"rerun"}
    assert "attacked.pred is" in found["rerun"] or "attacked.margin is" in found["rerun"]


def test_a_deleted_video_is_missing(run: Path, edit: Edit) -> None:
    def drop(record: dict[str, Any]) -> None:
        if record["batch"] == 1:
            record.clear()

    edit(run, drop)
    assert "2 planned videos without a record" in failed(verify_run(run))["coverage"]


def test_a_video_deleted_from_the_plan_too_changes_the_identity(run: Path, edit: Edit) -> None:
    def drop(record: dict[str, Any]) -> None:
        if record["batch"] == 1:
            record.clear()

    def unplan(manifest: dict[str, Any]) -> None:
        del manifest["batches"][1]
        manifest["dataset"]["n"] = 4

    edit(run, drop)
    edit(run / "run.json", unplan)
    write_summary(run)
    assert set(failed(verify_run(run))) == {"identity"}


def test_an_edited_summary_is_not_that_of_the_records(run: Path, edit: Edit) -> None:
    def praise(summary: dict[str, Any]) -> None:
        summary["definitions"]["robust_accuracy"]["value"] = 0.95

    edit(run / "summary.json", praise)
    found = failed(verify_run(run))
    assert set(found) == {"summary"}
    assert found["summary"].startswith("definitions.robust_accuracy.value is 0.95, the records")


def test_an_edited_interval_is_not_that_of_the_records(run: Path, edit: Edit) -> None:
    def narrow(summary: dict[str, Any]) -> None:
        mean = summary["metrics"]["toy-difference"]
        mean["ci95"] = [mean["value"]] * 2

    edit(run / "summary.json", narrow)
    assert "metrics.toy-difference.ci95" in failed(verify_run(run))["summary"]


def test_another_eps_in_run_json_is_not_that_of_the_configuration(run: Path, edit: Edit) -> None:
    edit(run / "run.json", lambda manifest: manifest["experiment"]["threat"].update(eps="2/255"))
    found = failed(verify_run(run))
    assert found["configuration"] == (
        "threat.eps is '4/255' in resolved.toml and '2/255' in run.json"
    )
    assert "linf 0.0156863 is above 0.00784314" in found["threat"]


def test_another_eps_in_both_files_changes_the_identity(run: Path, edit: Edit) -> None:
    edit(run / "run.json", lambda manifest: manifest["experiment"]["threat"].update(eps="6/255"))
    path = run / "resolved.toml"
    path.write_text(path.read_text().replace('eps = "4/255"', 'eps = "6/255"'))
    assert set(failed(verify_run(run))) == {"identity"}


def test_another_name_changes_the_identity(run: Path, edit: Edit) -> None:
    other = run.with_name("a-better-name")
    run.rename(other)
    edit(other / "run.json", lambda manifest: manifest.update(run="a-better-name"))
    assert "a record of run" in failed(verify_run(other))["records-schema"]
    edit(other, lambda record: record.update(run="a-better-name"))
    assert "the run's id should be" in failed(verify_run(other))["identity"]


def test_a_renamed_folder_is_named(run: Path) -> None:
    other = run.rename(run.with_name("renamed"))
    assert "has another name" in failed(verify_run(other))["files"]


def test_an_unfinished_run_fails(run: Path, edit: Edit) -> None:
    edit(run / "run.json", lambda manifest: manifest.update(status="interrupted"))
    assert "'interrupted', not done" in failed(verify_run(run))["files"]


def test_a_record_that_is_none_fails_the_schema(run: Path, edit: Edit) -> None:
    edit(run, lambda record: record.update(status="fine"))
    found = verify_run(run)
    assert "'fine'" in failed(found)["records-schema"]
    assert "summary" not in {check.name for check in found.checks}


@pytest.mark.parametrize(("name", "text"), [("run.json", "{"), ("records", "{}\n")])
def test_a_damaged_file_is_a_failed_check(run: Path, name: str, text: str) -> None:
    path = run / name
    (next(path.iterdir()) if path.is_dir() else path).write_text(text)
    assert set(failed(verify_run(run))) == {"files"}


def test_a_missing_configuration_fails(run: Path) -> None:
    (run / "resolved.toml").unlink()
    found = failed(verify_run(run))
    assert found["configuration"] == "resolved.toml is missing"


def test_clips_of_another_attack_fail(run: Path) -> None:
    np = pytest.importorskip("numpy")
    path = next((run / "artifacts").glob("*.npz"))
    with np.load(path) as arrays:
        clean = arrays["clean"]
    np.savez(path, clean=clean, adversarial=255 - clean)
    assert "allowed" in failed(verify_run(run))["clips"]


def test_a_run_without_clips_cannot_be_checked_for_them(run: Path) -> None:
    shutil.rmtree(run / "artifacts")
    found = verify_run(run)
    assert not found.failed
    assert [check.name for check in found.impossible] == ["clips"]


def test_other_versions_are_named_and_the_identity_still_holds(
    run: Path, edit: Edit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def here(name: str) -> str:
        return "9.9" if name == "vcr-toys" else "1.0.0a1"

    monkeypatch.setattr("vcr_core.leaderboard.identity_checks.installed_version", here)
    found = {check.name: check for check in verify_run(run).checks}
    assert found["identity"].outcome == "passed"
    assert found["versions"].outcome == "not possible"
    assert "vcr-toys 0 there, 9.9 here" in found["versions"].detail


def test_a_key_that_came_later_is_no_part_of_the_identity(run: Path, edit: Edit) -> None:
    identity = resolve_run(run / "resolved.toml").identity
    del identity["protocol"]["tie_frames"]
    labels = {record["video"]: record["label"] for record in read_records(run)}
    name, digest = run_id(identity, labels.items())

    def as_then(manifest: dict[str, Any]) -> None:
        manifest |= {"run": name, "experiment_hash": digest}
        del manifest["experiment"]["protocol"]["tie_frames"]

    edit(run / "run.json", as_then)
    edit(run / "summary.json", lambda summary: summary.update(run=name))
    edit(run, lambda record: record.update(run=name))
    path = run / "resolved.toml"
    path.write_text(path.read_text().replace("tie_frames = true\n", ""))
    assert failed(verify_run(run.rename(run.with_name(name)))) == {}


def test_objects_from_python_cannot_be_identified(run: Path, edit: Edit) -> None:
    def own(manifest: dict[str, Any]) -> None:
        manifest["components"][1] |= {"distribution": "local", "ref": "local/mine"}

    edit(run / "run.json", own)
    found = {check.name: check for check in verify_run(run).checks}
    assert found["identity"].outcome == "not possible"
    assert "local/mine" in found["identity"].detail


def test_the_content_is_that_of_the_claims_alone(run: Path, edit: Edit, tmp_path: Path) -> None:
    before = content_of(run)
    (run / "summary.json").unlink()
    moved = run.rename(tmp_path / "elsewhere")
    assert content_of(moved) == before
    edit(moved, lambda record: record.update(device="abacus"))
    assert content_of(moved) != before


def test_the_command_prints_a_line_a_check(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["leaderboard", "verify", str(run)]) == 0
    printed = capsys.readouterr()
    lines = [line.split("\t") for line in printed.out.splitlines()]
    assert [line[:3] for line in lines[:2]] == [
        [run.name, "files", "passed"], [run.name, "manifest", "passed"],
    ]  # fmt: skip
    assert "1 runs checked, 0 with a failed check" in printed.err


def test_the_command_fails_with_a_failed_check(
    run: Path, edit: Edit, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(run / "run.json", lambda manifest: manifest.update(status="running"))
    assert main(["leaderboard", "verify", str(run.parent), "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == 1
    assert data["runs"][0]["checks"][0]["outcome"] == "failed"


def test_the_command_says_that_it_cannot_evaluate_again(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["leaderboard", "verify", str(run), "--rerun", "1", "--device", "cuda:77"]) == 3
    assert "rerun\tnot possible" in capsys.readouterr().out


def test_the_command_refuses_what_is_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["leaderboard", "verify", str(tmp_path / "nothing")]) == 2
    assert main(["leaderboard", "verify", str(tmp_path)]) == 2
    assert "there is no run in it" in capsys.readouterr().err


def test_torch_is_needed_only_to_evaluate_again(run: Path, tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['torch'] = None; from vcr_core.cli import main; "
        "sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "leaderboard"]
    build = [*command, "build", str(run), "--output", str(tmp_path / "site")]
    assert subprocess.run(build, check=False).returncode == 0
    verify = [*command, "verify", str(run), "--rerun", "1"]
    done = subprocess.run(verify, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    outcomes = {line.split("\t")[1]: line.split("\t")[2:] for line in done.stdout.splitlines()}
    assert outcomes.pop("rerun") == ["not possible", "torch is not installed"]
    assert {outcome for outcome, _ in outcomes.values()} == {"passed"}
