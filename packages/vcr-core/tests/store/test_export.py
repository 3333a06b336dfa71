from __future__ import annotations

import csv
import io
import json
import sys

import pytest
from vcr_core import definitions
from vcr_core.errors import ComponentUnavailable, UsageError
from vcr_core.export import EXPORT_FORMATS, export_file, export_text, record_rows
from vcr_core.manifest import update_manifest
from vcr_core.summary import load_run
from vcr_core.tables import RECORD_COLUMNS, VCRBENCH_COLUMNS, to_csv

HEADER = (
    "video_name,gt_label,gt_class,clear_label,clear_class,clear_conf,target_label,target_class,"
    "attacked_label,attacked_class,attacked_conf,benign_conf,psnr,ssim,mse,lpips,vmaf,time,"
    "iter_count,query_count"
)


@pytest.fixture
def run(run_folder):
    return load_run(run_folder)


def _rows(text):
    rows = list(csv.DictReader(io.StringIO(text)))
    return {row.get("video") or row["video_name"]: row for row in rows}


def test_csv_has_fixed_columns_and_every_record(run):
    text = export_text([run], "csv")
    assert text.splitlines()[0] == ",".join([*RECORD_COLUMNS, "metric_mse", "metric_psnr"])
    rows = _rows(text)
    assert len(rows) == 10
    v0 = rows["v0"]
    assert v0["attacked_pred"] == "1"
    assert v0["attacked_defended_right"] == "1.0"
    assert v0["success_target"] == "true"
    assert v0["linf"] == repr(8 / 255)
    assert v0["metric_psnr"] == "40.0"
    # Missing is empty, never 0.
    assert rows["v2"]["metric_psnr"] == ""
    assert rows["v2"]["metric_mse"] == "0.0"
    assert rows["v8"]["clean_pred"] == ""
    assert rows["v8"]["error_type"] == "VideoReadError"
    assert rows["v6"]["forwards"] == ""


def test_text_that_looks_like_something_else_survives(run):
    text = export_text([run], "csv")
    labels = {row["label_name"] for row in _rows(text).values()}
    assert labels == {"NA", "007", 'a "b", c'}
    # Quoted, so that a reader which tells quoted text from numbers keeps it too.
    assert '"NA"' in text
    assert '"007"' in text


def test_csv_text_round_trip():
    values = ["NA", "None", "null", "nan", "007", "1e5", "true", "", "a,b", 'q"q', "line\nend", "é"]
    columns = {"name": "text", "n": "int"}
    text = to_csv(columns, [{"name": value, "n": i} for i, value in enumerate(values)])
    read = list(csv.reader(io.StringIO(text)))
    assert [row[0] for row in read[1:]] == values


def test_several_runs_share_one_table(run, run_folder):
    update_manifest(run_folder, run="other")
    text = export_text([run, load_run(run_folder)], "csv")
    assert len(text.splitlines()) == 21


def test_json_has_everything(run):
    data = json.loads(export_text([run], "json"))
    assert data["schema"] == 1
    assert data["runs"][0]["records"] == run.records
    assert data["runs"][0]["summary"] == run.summary
    assert data["runs"][0]["manifest"] == run.manifest


def test_vcrbench_header_is_exact(run):
    assert ",".join(VCRBENCH_COLUMNS) == HEADER
    assert len(VCRBENCH_COLUMNS) == 20
    assert export_text([run], "vcrbench").splitlines()[0] == HEADER


def test_vcrbench_rows_are_of_the_defended_model(run):
    rows = _rows(export_text([run], "vcrbench"))
    # The official file has no row for a video that failed.
    assert set(rows) == {f"v{i}" for i in range(10)} - {"v8"}
    v0 = rows["v0"]
    assert (v0["gt_label"], v0["gt_class"]) == ("0", "NA")
    assert (v0["clear_label"], v0["clear_class"], v0["clear_conf"]) == ("0", "NA", "0.75")
    assert (v0["target_label"], v0["target_class"]) == ("1", "007")
    # d∘f(a) is right although f(a) is not.
    assert (v0["attacked_label"], v0["attacked_conf"], v0["benign_conf"]) == ("0", "0.75", "0.75")
    assert (v0["psnr"], v0["mse"]) == ("40.0", "6.5025")
    assert v0["time"] == "2.75"
    assert (v0["iter_count"], v0["query_count"]) == ("20", "10")


def test_vcrbench_has_empty_cells_instead_of_zeros(run):
    rows = _rows(export_text([run], "vcrbench"))
    for name in ("ssim", "lpips", "vmaf"):
        assert rows["v0"][name] == ""
    assert rows["v2"]["psnr"] == ""
    for name in ("psnr", "mse", "time", "iter_count", "query_count"):
        assert rows["v6"][name] == ""


def test_vcrbench_takes_the_forms_of_its_own_code_where_they_were_measured(run):
    for record in run.records:
        if record["video"] == "v0":
            record["metrics"]["ssim"] = {"value": 0.9}
            record["metrics"]["ssim-uniform7"] = {"value": 0.95}
            record["metrics"]["lpips"] = {"value": 0.2}
    row = _rows(export_text([run], "vcrbench"))["v0"]
    assert (row["ssim"], row["lpips"]) == ("0.95", "0.2")


def test_vcrbench_uses_the_first_draw(run):
    record = run.records[0]
    draws = [{"pred": 2, "p_label": 0.25, "p_pred": 0.5}, record["attacked_defended"][0]]
    run.records[0] = {**record, "attacked_defended": draws}
    row = _rows(export_text([run], "vcrbench"))["v0"]
    assert (row["attacked_label"], row["attacked_conf"], row["benign_conf"]) == ("2", "0.5", "0.25")


def test_vcrbench_without_defense_is_of_the_model(run):
    run.records[:] = [
        {k: v for k, v in r.items() if not k.endswith("_defended")} for r in run.records
    ]
    row = _rows(export_text([run], "vcrbench"))["v0"]
    assert (row["attacked_label"], row["benign_conf"]) == ("1", "0.125")


def test_rates_of_the_paper_follow_from_the_vcrbench_file(run):
    rows = _rows(export_text([run], "vcrbench")).values()
    right = [row for row in rows if row["clear_label"] == row["gt_label"]]
    lost = [row for row in right if row["attacked_label"] != row["gt_label"]]
    found = definitions.evaluate("asr_paper", run.records)
    assert (len(lost), len(right)) == (found["k"], found["n"])


def test_vcrbench_is_one_run_a_file(run):
    with pytest.raises(UsageError, match="holds one run and 2 were given"):
        export_text([run, run], "vcrbench")


def test_vcrbench_folder_has_the_official_layout(run, tmp_path):
    written = export_file([run], "vcrbench", tmp_path / "out")
    expected = tmp_path / "out" / "pgd_target_blur_non-adaptive" / "tiny.r3d.csv"
    assert written == [expected]
    assert expected.read_text() == export_text([run], "vcrbench")


def test_vcrbench_layout_refuses_two_runs_in_one_file(run, tmp_path):
    with pytest.raises(UsageError, match="same VCR-Bench file name"):
        export_file([run, run], "vcrbench", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("fmt", ["csv", "json", "vcrbench"])
def test_files_are_replaced_as_a_whole(run, tmp_path, fmt):
    path = tmp_path / "out.data"
    path.write_text("an old file with other columns, and longer than a header line\n" * 1000)
    assert export_file([run], fmt, path) == [path]
    assert path.read_text() == export_text([run], fmt)
    assert [p.name for p in tmp_path.glob("*out*")] == ["out.data"]


@pytest.mark.parametrize("fmt", [f for f in EXPORT_FORMATS if f != "parquet"])
def test_no_bare_nan_or_infinity(run, fmt):
    words = set(export_text([run], fmt).replace(",", " ").replace(":", " ").split())
    assert not {"nan", "NaN", "inf", "Infinity", "-Infinity", "None"} & words


def test_parquet_round_trip(run, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "records.parquet"
    assert export_file([run], "parquet", path) == [path]
    table = pq.read_table(path)
    assert table.column_names == [*RECORD_COLUMNS, "metric_mse", "metric_psnr"]
    rows = {row["video"]: row for row in table.to_pylist()}
    assert rows["v0"]["label_name"] == "NA"
    assert rows["v0"]["label"] == 0
    assert rows["v0"]["linf"] == 8 / 255
    assert rows["v2"]["metric_psnr"] is None
    assert rows["v0"]["success_target"] is True
    assert rows["v8"]["error_oom"] is False
    text = _rows(export_text([run], "csv"))
    for video, row in rows.items():
        assert text[video]["status"] == row["status"]


def test_parquet_without_pyarrow_says_what_to_install(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ComponentUnavailable, match=r"vcr-core\[parquet\]"):
        export_file([run], "parquet", tmp_path / "x.parquet")
    assert not list(tmp_path.glob("*.parquet"))


def test_parquet_is_no_text(run):
    with pytest.raises(UsageError, match="--output"):
        export_text([run], "parquet")


def test_record_rows_have_every_column(run):
    rows = record_rows(run)
    assert len(rows) == 10
    for row in rows:
        assert list(row) == [*RECORD_COLUMNS, "metric_mse", "metric_psnr"]
    assert rows[2]["metric_psnr"] is None


def test_frames_have_a_row_each_with_their_place_in_the_file(run):
    record = run.records[0]
    metrics = {
        "psnr": {"value": 40.0, "per_frame": [41.0, None, 39.0]},
        "ssim": {"value": 0.9, "per_frame": [0.8, 0.9, 1.0]},
        "vmaf": {"value": 90.0},
    }
    run.records[:] = [{**record, "metrics": metrics, "input": {"indices": [4, 8, 12]}}]
    rows = list(csv.DictReader(io.StringIO(export_text([run], "frames"))))
    assert [(r["frame"], r["source_frame"], r["psnr"], r["ssim"]) for r in rows] == [
        ("0", "4", "41.0", "0.8"), ("1", "8", "", "0.9"), ("2", "12", "39.0", "1.0"),
    ]  # fmt: skip
    assert {r["video"] for r in rows} == {"v0"}
    assert "vmaf" not in rows[0]
    # With other frames than the file's, the place in it is not known.
    run.records[0]["input"] = {"indices": [4, 8]}
    rows = list(csv.DictReader(io.StringIO(export_text([run], "frames"))))
    assert {r["source_frame"] for r in rows} == {""}


def test_frames_without_values_are_a_header(run):
    assert export_text([run], "frames") == "run,video,frame,source_frame\n"


def test_the_vcrbench_log_has_a_line_a_run(run):
    text = export_text([run, run], "vcrbench-log")
    assert text.splitlines()[0] == (
        "model,attack,test_dataset,time,mean_time,mean_iterations,eps,iter,mean_psnr,mean_vmaf,"
        "clear_correct,attacked_success,target_success,num_total"
    )
    first, second = csv.DictReader(io.StringIO(text))
    assert first == second
    paper = definitions.evaluate("asr_paper", run.records)
    assert int(first["attacked_success"]) == paper["k"]
    assert int(first["clear_correct"]) == paper["n"]
    # The video that failed is not among them.
    assert first["num_total"] == "9"
    assert first["mean_vmaf"] == ""
    assert float(first["eps"]) == 8.0
    attacked = [r for r in run.records if r["status"] == "ok"]
    assert float(first["time"]) == pytest.approx(2.75 * len(attacked))
    hits = sum(r["attacked_defended"][0]["pred"] == r["target"] for r in attacked)
    assert int(first["target_success"]) == hits


def test_the_vcrbench_log_of_a_clean_run_has_empty_cells(run):
    run.manifest["experiment"].pop("attack", None)
    (row,) = csv.DictReader(io.StringIO(export_text([run], "vcrbench-log")))
    assert (row["attack"], row["eps"], row["attacked_success"]) == ("", "", "")
