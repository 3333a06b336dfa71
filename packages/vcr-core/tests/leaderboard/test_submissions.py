"""Which runs are admitted, and the reasons for leaving others out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from vcr_core.errors import StoreError
from vcr_core.leaderboard.checks import (
    Verification,
    VerificationFile,
    failed,
    passed,
    read_verifications,
)
from vcr_core.leaderboard.content import content_of
from vcr_core.leaderboard.submissions import LeftOut, Rules, Submission, collect
from vcr_core.leaderboard.verify import verify_run

MakeRun = Callable[..., Path]
RULES = Rules(verified={})


def taken(tmp_path: Path, rules: Rules = RULES) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    found, left_out = collect([tmp_path / "runs"], rules)
    return [one.run.name for one in found], {one.run: one.reasons for one in left_out}


def fail(videos: int) -> Callable[[dict[str, Any], list[dict[str, Any]]], None]:
    def edit(_: dict[str, Any], records: list[dict[str, Any]]) -> None:
        for record in records[:videos]:
            for key in ("clean", "attacked", "success", "perturbation", "metrics", "cost"):
                record.pop(key)
            error = {"stage": "decode", "type": "VideoReadError", "message": "torn"}
            record |= {"status": "error", "error": error}

    return edit


def test_a_good_run_is_admitted_with_numbers_from_its_records(
    make_run: MakeRun, tmp_path: Path
) -> None:
    folder = make_run(4)
    (folder / "summary.json").write_text('{"definitions": {"robust_accuracy": {"value": 1.0}}}')
    (one,), left_out = collect([tmp_path / "runs"], RULES)
    assert isinstance(one, Submission)
    assert (one.measure, one.value, left_out) == ("robust_accuracy", 0.4, [])
    assert sum(one.holds.values()) == 4
    # Its components are not installed, so its identity cannot be computed.
    assert one.verification.state == "partly checked"
    assert one.run.records == []


def test_an_unfinished_run_is_left_out(make_run: MakeRun, tmp_path: Path) -> None:
    def stop(manifest: dict[str, Any], records: list[dict[str, Any]]) -> None:
        manifest["status"] = "interrupted"
        del records[3:]

    make_run(edit=stop)
    assert taken(tmp_path) == ([], {"run-001": ("not finished: interrupted, 3 of 10 videos",)})


def test_too_many_errors_are_a_reason(make_run: MakeRun, tmp_path: Path) -> None:
    make_run(edit=fail(1))
    assert taken(tmp_path)[1] == {"run-001": ("1 of 10 videos have no result; 5% are allowed",)}
    names, left_out = taken(tmp_path, Rules(verified={}, max_errors=0.1))
    assert (names, left_out) == (["run-001"], {})


def test_flags_can_be_a_reason(make_run: MakeRun, tmp_path: Path) -> None:
    make_run(edit=lambda manifest, _: manifest.update(flags=["leak"]))
    assert taken(tmp_path)[0] == ["run-001"]
    rules = Rules(verified={}, exclude_flags=frozenset({"leak"}))
    assert taken(tmp_path, rules)[1] == {"run-001": ("health flag leak",)}


def test_a_record_at_odds_with_itself_is_a_reason(make_run: MakeRun, tmp_path: Path) -> None:
    def forge(_: dict[str, Any], records: list[dict[str, Any]]) -> None:
        records[9]["attacked"]["pred"] = 0

    make_run(edit=forge)
    (reason,) = taken(tmp_path)[1]["run-001"]
    assert reason.startswith("consistency: v09:")


def test_what_cannot_be_read_is_left_out_without_its_folder(
    make_run: MakeRun, tmp_path: Path
) -> None:
    (make_run() / "run.json").write_text("{")
    (reason,) = taken(tmp_path)[1]["run-001"]
    assert reason.startswith("cannot be read: run-001/run.json")
    assert str(tmp_path) not in reason


def test_the_same_experiment_counts_once(make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run(4)
    other = Path(shutil.copytree(folder, folder.with_name("again")))
    manifest = json.loads((other / "run.json").read_text())
    (other / "run.json").write_text(json.dumps({**manifest, "ended": "2026-06-01T00:00:00.000Z"}))
    found, (left,) = collect([tmp_path / "runs"], RULES)
    assert [one.run.folder.name for one in found] == ["run-001"]
    assert left.reasons == ("the same experiment was submitted before: the same outcomes",)


def test_a_failed_verification_keeps_a_run_out(make_run: MakeRun, tmp_path: Path) -> None:
    folder = make_run()
    content = content_of(folder)
    bad = Verification(run="run-001", content=content, checks=[failed("rerun", "v01: differs")])
    assert taken(tmp_path, Rules(verified={content: bad}))[1] == {
        "run-001": ("rerun: v01: differs",)
    }


def test_only_verified_runs_can_be_asked_for(make_run: MakeRun, tmp_path: Path) -> None:
    folder, _ = make_run(model="a"), make_run(model="b")
    content = content_of(folder)
    good = Verification(
        run="run-001", content=content, checks=[passed("rerun", "the same")], rerun=4
    )
    rules = Rules(verified={content: good}, only_verified=True)
    found, (left,) = collect([tmp_path / "runs"], rules)
    assert [(one.run.name, one.verification.state) for one in found] == [("run-001", "re-run")]
    assert left == LeftOut(
        run="run-002", folder="run-002", reasons=("it has not been verified as it is now",)
    )


def test_verifications_are_read_and_the_worst_counts(tmp_path: Path) -> None:
    def file(name: str, *found: Verification) -> Path:
        path = tmp_path / name
        path.write_bytes(msgspec.json.encode(VerificationFile(runs=list(found))))
        return path

    good = Verification(run="r", content="c", checks=[passed("rerun", "")], rerun=9)
    bad = Verification(run="r", content="c", checks=[failed("rerun", "")], rerun=2)
    plain = Verification(run="r", content="c", checks=[])
    one, two = file("1.json", plain, good), file("2.json", bad)
    assert read_verifications([one])["c"] == good
    assert read_verifications([one, two])["c"] == bad
    assert read_verifications([two, one])["c"] == bad


@pytest.mark.parametrize("text", ["", "[]", '{"runs": [], "schema": 99}'])
def test_a_file_that_holds_no_verifications_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(StoreError, match=r"x\.json"):
        read_verifications([path])


@pytest.mark.parametrize(
    "changes",
    [
        {"batches": 5},
        {"batches": []},
        {"dataset": "clips"},
        {"components": [1]},
        {"flags": "leak"},
        {"environment": []},
        {"experiment": {}},
        {"experiment": {"dataset": {"name": "a"}, "model": {"name": "b"}, "defense": 3}},
        {"experiment": {"dataset": {"name": "a"}, "model": {"name": "b"}, "threat": {"eps": "x"}}},
        {"evaluation_version": None},
    ],
)
def test_a_manifest_may_hold_anything(
    make_run: MakeRun, tmp_path: Path, changes: dict[str, Any]
) -> None:
    make_run(edit=lambda manifest, _: manifest.update(flags=[]))
    path = tmp_path / "runs" / "run-001" / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    (reason,) = taken(tmp_path)[1]["run-001"]
    assert reason.startswith("manifest: run.json")
    assert [check.name for check in verify_run(path.parent).failed] == ["manifest"]


@pytest.mark.parametrize("changes", [{"attempt": "x"}, {"clean": 3}, {"label": "walk"}])
def test_a_record_may_hold_anything(
    make_run: MakeRun, tmp_path: Path, changes: dict[str, Any]
) -> None:
    folder = make_run(edit=lambda _, records: records[0].update(changes))
    (reason,) = taken(tmp_path)[1]["run-001"]
    assert reason.startswith("records-schema: v00:")
    assert [check.name for check in verify_run(folder).failed] == ["records-schema"]


@pytest.mark.parametrize("name", ["run.json", "resolved.toml"])
def test_bottomless_files_are_left_out(make_run: MakeRun, tmp_path: Path, name: str) -> None:
    folder = make_run()
    deep = 100_000
    text = "[" * deep if name == "run.json" else f"a = {'[' * deep}{']' * deep}"
    (folder / name).write_text(text)
    assert len(taken(tmp_path)[1]["run-001"]) >= 1
    assert verify_run(folder).failed
