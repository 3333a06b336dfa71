from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
from vcr_core.errors import StoreError
from vcr_core.manifest import read_manifest
from vcr_core.records import RecordWriter, record_path
from vcr_core.summary import find_runs, load_run, summarize, write_summary


def _refuse(name):
    raise AssertionError(f"bare {name}")


def test_summary_is_strict_json_and_derived(run_folder):
    summary = write_summary(run_folder)
    text = (run_folder / "summary.json").read_text()
    assert json.loads(text, parse_constant=_refuse) == summary
    (run_folder / "summary.json").unlink()
    assert load_run(run_folder).summary == summary


def test_counts(run_folder):
    counts = load_run(run_folder).summary["counts"]
    assert counts == {
        "ok": 7, "ineligible": 2, "error": 1, "skipped": 0,
        "total": 10, "planned": 10, "missing": 0,
    }  # fmt: skip


def test_metrics_say_what_they_rest_on(manifest, ten_records):
    psnr = summarize(manifest, ten_records)["metrics"]["psnr"]
    assert psnr["value"] == pytest.approx(40.0)
    assert (psnr["n"], psnr["null"], psnr["reasons"]) == (6, 1, {"identical": 1})
    assert psnr["method"] == "bootstrap"
    # v0 and v4 are given their target.
    assert psnr["over_successes"]["n"] == 2


def test_psnr_of_mean_mse_is_not_the_mean_psnr(manifest, ten_records):
    by_mse = dict(zip(("v0", "v1", "v2"), (0.0, 6.5025, 65.025), strict=True))
    for record in ten_records:
        record.pop("metrics", None)
        if record["video"] in by_mse:
            record["metrics"] = {"mse": {"value": by_mse[record["video"]]}}
    found = summarize(manifest, ten_records)["metrics"]
    assert found["psnr_of_mean_mse"]["value"] == pytest.approx(34.3573, abs=1e-4)
    assert found["psnr_of_mean_mse"]["n"] == 3
    # Videos that have no such reading are nulls, not zeros.
    assert found["mse"]["reasons"] == {"not measured": 4}
    assert found["mse"]["value"] == pytest.approx(23.8425)


def test_identical_clips_have_no_psnr_at_all(manifest, ten_records):
    for record in ten_records:
        if "metrics" in record:
            record["metrics"] = {"mse": {"value": 0.0}, "psnr": {"value": None}}
            record["notes"] = {"metrics.psnr": "identical"}
    found = summarize(manifest, ten_records)["metrics"]
    assert found["psnr"]["value"] is None
    assert found["psnr"]["reasons"] == {"identical": 7}
    assert found["psnr_of_mean_mse"]["value"] is None
    assert found["psnr_of_mean_mse"]["reasons"] == {"identical": 7}


def test_identical_clips_count_as_100_db_in_the_capped_mean(manifest, ten_records):
    by_psnr = {"v0": None, "v1": 40.0, "v2": 30.0}
    for record in ten_records:
        record.pop("metrics", None)
        if record["video"] in by_psnr:
            value = by_psnr[record["video"]]
            reading = {"value": value} if value else {"value": None, "reason": "identical"}
            record["metrics"] = {"psnr": reading}
    found = summarize(manifest, ten_records)["metrics"]
    assert found["psnr_capped_mean"]["value"] == pytest.approx(56.6667, abs=1e-4)
    # What was not measured is not identical.
    assert (found["psnr_capped_mean"]["n"], found["psnr_capped_mean"]["null"]) == (3, 4)
    assert found["psnr"]["value"] == pytest.approx(35)


def test_one_infinite_value_does_not_reach_a_mean(manifest, ten_records):
    ten_records[0]["metrics"]["psnr"]["value"] = math.inf
    psnr = summarize(manifest, ten_records)["metrics"]["psnr"]
    assert psnr["value"] == pytest.approx(40.0)
    assert (psnr["n"], psnr["null"]) == (5, 2)


def test_costs_are_over_attacked_videos(manifest, ten_records):
    costs = summarize(manifest, ten_records)["costs"]
    # v0 to v5 and v9: 10 … 60 and 100 forwards.
    assert costs["forwards"]["mean"] == pytest.approx(310 / 7)
    assert costs["forwards"]["median"] == 40
    assert costs["forwards"]["n"] == 7
    # Successes: v0 (10) and v4 (50).
    assert costs["forwards"]["median_over_successes"] == 30
    assert costs["budget_exhausted"] == {"count": 1, "n": 7}
    assert costs["t_attack_s"]["sum"] == pytest.approx(14.0)


def test_perturbation_and_confidence(manifest, ten_records):
    summary = summarize(manifest, ten_records)
    assert summary["perturbation"]["linf"]["max"] == pytest.approx(8 / 255)
    assert summary["perturbation"]["projected"] == 0
    # 4 of 7 attacked videos drop from 0.75 to 0.125.
    drop = summary["predictions"]["confidence_drop"]
    assert drop["value"] == pytest.approx(4 / 7 * 0.625)


def test_flags_and_errors(manifest, ten_records):
    summary = summarize({**manifest, "flags": ["attack-no-effect"]}, ten_records)
    assert summary["flags"] == {"attack-no-effect": None, "zero-gradient": 1}
    assert summary["errors"] == {
        "by_type": {"VideoReadError": 1}, "by_stage": {"decode": 1}, "out_of_memory": 0,
    }  # fmt: skip


def test_headline_of_a_non_adaptive_run_is_the_bare_pair(manifest, ten_records):
    summary = summarize(manifest, ten_records)
    headline = summary["headline"]
    assert summary["adaptive"] is False
    assert not headline["defended"]
    assert headline["definitions"]["robust_accuracy"] == "robust_accuracy"
    assert headline["values"]["robust_accuracy"] == pytest.approx(3 / 9)
    assert "did not know the defense" in headline["note"]


def test_headline_of_an_adaptive_run_is_the_defended_pair(manifest, ten_records):
    manifest["experiment"]["protocol"]["attacker_knows_defense"] = True
    summary = summarize(manifest, ten_records)
    headline = summary["headline"]
    assert summary["adaptive"] is True
    assert headline["definitions"] == {
        "clean_accuracy": "defended_clean_accuracy",
        "robust_accuracy": "defended_robust_accuracy",
        "asr": "defended_asr_untargeted",
        "asr_targeted": "defended_asr_targeted",
    }
    assert headline["values"]["robust_accuracy"] == pytest.approx(4 / 9)
    assert "transfer" in headline["note"]
    assert "robust_accuracy" in summary["definitions"]


def test_clean_run_has_no_attack_numbers(manifest, ten_records):
    manifest["experiment"] = {"model": {"name": "m"}, "dataset": {"name": "d"}}
    records = [
        {**{k: r[k] for k in ("video", "label", "status")}, "clean": r["clean"], "status": "ok",
         "cost": {"t_clean_s": 0.5}}
        for r in ten_records
        if "clean" in r
    ]  # fmt: skip
    summary = summarize(manifest, records)
    assert set(summary["definitions"]) == {"clean_accuracy", "clean_top5_accuracy"}
    assert summary["adaptive"] is None
    assert summary["targeted"] is None
    assert summary["headline"]["values"] == {"clean_accuracy": pytest.approx(7 / 9)}
    assert summary["metrics"] == {}
    assert summary["costs"]["t_clean_s"]["n"] == 9


def test_run_in_which_everything_failed_still_has_a_summary(manifest, ten_records):
    failed = [r for r in ten_records if r["status"] == "error"]
    summary = summarize(manifest, failed)
    assert summary["counts"]["error"] == 1
    assert summary["counts"]["missing"] == 9
    rate = summary["definitions"]["defended_robust_accuracy"]
    assert (rate["value"], rate["n"]) == (None, 0)
    assert summary["headline"]["values"]["asr"] is None


def test_evaluation_version_comes_from_the_manifest(manifest, ten_records):
    summary = summarize({**manifest, "evaluation_version": 7}, ten_records)
    assert summary["evaluation_version"] == 7


def test_summary_does_not_depend_on_shards_or_interruptions(run_folder, tmp_path, ten_records):
    other = tmp_path / "sharded"
    other.mkdir()
    (other / "run.json").write_bytes((run_folder / "run.json").read_bytes())
    for shard in (2, 0, 1):
        with RecordWriter(record_path(other, shard, 0)) as writer:
            writer.append([{**r, "shard": shard} for r in ten_records if r["batch"] == shard])
    with record_path(other, 1, 0).open("ab") as file:
        file.write(b'{"video": "v9", "ba')
    assert load_run(other).summary == load_run(run_folder).summary


def test_run_view(run_folder):
    run = load_run(run_folder)
    assert (run.name, run.dataset, run.model, run.attack) == ("r", "toy", "tiny.r3d", "pgd")
    assert run.defenses == ("blur",)
    assert run.manifest == read_manifest(run_folder)
    assert len(run.records) == 10


def test_find_runs(tmp_path):
    for name in ("sweep/b", "sweep/a", "deep/er/c", ".hidden/d"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "run.json").write_text("{}")
    # What is inside a run folder is the run's own.
    (tmp_path / "sweep/a/artifacts/x").mkdir(parents=True)
    (tmp_path / "sweep/a/artifacts/x/run.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    assert [p.relative_to(tmp_path).as_posix() for p in find_runs(tmp_path)] == [
        "deep/er/c", "sweep/a", "sweep/b",
    ]  # fmt: skip
    assert find_runs(tmp_path / "sweep" / "a") == [tmp_path / "sweep" / "a"]
    assert find_runs(tmp_path / "sweep" / "a" / "run.json") == [tmp_path / "sweep" / "a"]
    assert find_runs(tmp_path / "empty") == []
    with pytest.raises(StoreError, match="no such folder"):
        find_runs(tmp_path / "nowhere")


def test_store_modules_import_nothing_heavy():
    code = (
        "import sys\n"
        "import vcr_core.atomic, vcr_core.definitions, vcr_core.environment, vcr_core.export\n"
        "import vcr_core.manifest, vcr_core.means, vcr_core.plan, vcr_core.ranking\n"
        "import vcr_core.record_schema, vcr_core.records, vcr_core.stats, vcr_core.status\n"
        "import vcr_core.summary, vcr_core.tables\n"
        "heavy = {'torch', 'numpy', 'pyarrow', 'scipy', 'pandas', 'av'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_number_rests_on_details_and_the_summary_can_be_left_out(run_folder, ten_records):
    with RecordWriter(record_path(run_folder, 1, 0)) as writer:
        long = {"trace": [[1, 0.5]], "metrics": {"psnr": {"value": 3.0, "per_frame": [3.0]}}}
        writer.append([{**ten_records[0], **long, "attempt": 2}])
    whole, slim = load_run(run_folder), load_run(run_folder, details=False)
    assert [record["video"] for record in whole.records if "trace" in record] == ["v0"]
    assert not any("trace" in record for record in slim.records)
    assert slim.summary == whole.summary
    bare = load_run(run_folder, summary=False)
    assert (bare.summary, bare.records) == ({}, whole.records)
