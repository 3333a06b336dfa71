from __future__ import annotations

import csv
import io
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from vcr_core.cli import main
from vcr_core.errors import UsageError
from vcr_core.paper import published
from vcr_core.paper.filling import place
from vcr_core.reporters.cells import MISSING
from vcr_core.reporters.paper_tables import paper_table, table_text

pytestmark = pytest.mark.golden


@pytest.fixture
def fitting(make_run: Any, records: Any) -> Any:
    """Make a run that meets the paper's conditions; ``held`` of 8 videos survive, 6 were right."""

    def make(
        model: str = "amd", attack: str = "ifgsm", held: int = 2, videos: int = 8, **options: Any
    ) -> Any:
        defense = options.get("defense")
        made = [
            records.video(
                f"v{i}",
                right=i < 6,
                held=i < held,
                defended=(i < 5, i < held) if defense else None,
                target=2,
                metrics={"mse": {"value": 8.0}, "psnr": {"value": 39.0 + i}},
            )
            for i in range(videos)
        ]
        for record in made:
            record["cost"] |= {"iterations": 20, "t_clean_s": 0.25, "t_eval_s": 0.25}
        run = make_run(model=model, attack=attack, records=made, **options)
        experiment = run.manifest["experiment"]
        experiment["dataset"]["name"] = "vcr-core/kinetics400"
        experiment["threat"] |= {"targeted": True, "target": "least-likely"}
        return run

    return make


def test_table_2_is_complete_and_obeys_its_identity() -> None:
    table = published.table2()
    assert len(table) == 19
    assert table["VideoMAEv2"]["clean_acc"] == pytest.approx(0.8412)
    assert table["ActionCLIP"]["psnr_db"] == 43.88
    for row in table.values():
        gap = published.identity_gap(row["clean_acc"], row["asr"], row["robust_acc"])
        assert abs(gap) <= 0.0001
    assert set(table) == set(published.names().models)


def test_psnr_of_table_2_is_a_mean_over_videos() -> None:
    import math

    for row in published.table2().values():
        of_mean = 10 * math.log10(255**2 / row["mse"])
        assert 5.0 < row["psnr_db"] - of_mean < 6.5


def test_table_3_has_one_base_a_row_except_for_one_column() -> None:
    table = published.table3()
    assert len(table) == 49
    assert (len(published.defenses3()), len(published.attacks3())) == (7, 7)
    for defense in published.defenses3():
        bases = {a: published.implied_clean(*table[defense, a]) for a in published.attacks3()}
        centre = median(bases.values())
        for attack, base in bases.items():
            if attack == "Zhang LPIPS":
                assert centre - base > 0.12
            else:
                assert base == pytest.approx(centre, abs=0.03)
    assert set(published.defenses3()) == set(published.names().defenses)
    assert set(published.attacks3()) < set(published.names().attacks)


def test_names_are_exact_about_weights() -> None:
    names = published.names()
    assert names.model("amd") == names.model("amd.b-k400") == "AMD"
    assert names.model("amd.s-k400") is None
    assert names.model("video-swin.b-k400") == "Video Swin"
    # The default weights of ours are others than the paper's.
    assert names.model("video-swin") is None
    assert names.attack("ifgsm.paper") == "I-FGSM"
    assert names.defense("crop-resize.vcr-bench-repo") == "Crop-resize"
    assert names.attack("pgd") is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda e: None, ""),
        (lambda e: e["dataset"].update(name="motion"), "on motion, not kinetics400"),
        (lambda e: e["model"].update(name="tiny-r3d"), "tiny-r3d is not in the paper"),
        (lambda e: e["model"].update(variant="s-k400"), "amd.s-k400 is not in the paper"),
        (lambda e: e["attack"].update(name="pgd"), "pgd is not in the paper's tables"),
        (lambda e: e["threat"].update(targeted=False), "untargeted; "),
        (lambda e: e["threat"].update(target="random"), "target random; "),
        (lambda e: e["threat"].update(eps="2/255"), "at L∞ 2/255; the paper's radius is L∞ 8/255"),
        (lambda e: e["threat"].update(norm="l2", eps=1.0), "at L2 1; "),
        (lambda e: e["threat"].update(norm="none"), ""),
    ],
)
def test_conditions(fitting: Any, change: Any, reason: str) -> None:
    run = fitting()
    change(run.manifest["experiment"])
    found = place(run).reason
    assert found.startswith(reason)
    assert bool(found) is bool(reason)


def test_a_run_fills_its_row_of_table_2(fitting: Any) -> None:
    table = paper_table("paper-table2", [fitting(), fitting(attack="mifgsm", held=4)])
    groups = {group.row: group for group in table.groups}
    assert len(groups) == 19
    (line,) = groups["AMD"].lines
    cells = {key: cell.value for key, (cell,) in line.cells.items()}
    # 6 of 8 right; 4 and 2 of these lost.
    assert cells["clean_acc"] == 0.75
    assert cells["asr"] == pytest.approx(6 / 12)
    assert cells["robust_acc"] == pytest.approx(6 / 16)
    assert (cells["mse"], cells["psnr_db"], cells["iters"]) == (8.0, pytest.approx(42.5), 20.0)
    assert cells["time_per_video_s"] == pytest.approx(1.0)
    assert cells["vmaf"] is None
    (empty,) = groups["TSN"].lines
    assert all(cell.value is None for found in empty.cells.values() for cell in found)
    assert "ours: to within 0.000 points in 1 rows" in table.checks[1]
    assert "to within 0.008 points in 19 rows" in table.checks[0]
    assert "Our rows are means over I-FGSM, MI-FGSM." in table.notes


def test_runs_behind_a_defense_are_not_in_table_2(fitting: Any) -> None:
    table = paper_table("paper-table2", [fitting(defense="median")])
    assert all(not line.runs for group in table.groups for line in group.lines)


def test_rows_of_different_videos_or_attacks_are_told(fitting: Any) -> None:
    notes = paper_table("paper-table2", [fitting(), fitting("ila", "mifgsm", videos=4)]).notes
    assert any(note.startswith("Rows rest on different videos") for note in notes)
    assert any("means over different attacks" in note for note in notes)


def test_other_definitions_are_told(fitting: Any) -> None:
    run = fitting()
    for record in run.records:
        record["metrics"]["ssim"] = {"value": 0.9}
    text = table_text(paper_table("paper-table2", [run]), "md")
    assert "ssim is ssim, the paper's is ssim-uniform7" in text
    for record in run.records:
        record["metrics"]["ssim-uniform7"] = {"value": 0.95}
    table = paper_table("paper-table2", [run])
    line = next(group for group in table.groups if group.row == "AMD").lines[0]
    assert line.cells["ssim"][0].value == pytest.approx(0.95)
    assert not any("Other definitions" in note for note in table.notes)


def test_the_run_with_the_most_videos_counts(fitting: Any) -> None:
    small, large = fitting(held=0, videos=4), fitting(held=6)
    table = paper_table("paper-table2", [small, large])
    line = next(group for group in table.groups if group.row == "AMD").lines[0]
    assert line.cells["robust_acc"][0].value == 0.75


def test_table_3_is_a_mean_over_models_with_adaptive_runs_apart(fitting: Any) -> None:
    runs = [
        *(fitting(model, held=held) for model, held in (("amd", 1), ("ila", 3))),
        fitting(defense="flip", held=4),
        fitting(defense="flip", held=5, adaptive=False),
        fitting(defense="jpeg"),
    ]
    table = paper_table("paper-table3", runs)
    groups = {group.row: group for group in table.groups}
    assert list(groups) == published.defenses3()
    assert groups["Flip"].published["I-FGSM"] == pytest.approx((0.055, 0.926))
    (bare,) = groups["No defense"].lines
    robust, asr = bare.cells["I-FGSM"]
    assert robust.value == pytest.approx((1 / 8 + 3 / 8) / 2)
    assert asr.value == pytest.approx(8 / 12)
    adaptive, unaware = groups["Flip"].lines
    assert (adaptive.source, unaware.source) == ("ours, adaptive", "ours, unaware")
    assert adaptive.cells["I-FGSM"][0].value == 0.5
    assert unaware.cells["I-FGSM"][1].value == 0.0
    assert any("1 runs: defenses that the paper's table does not have" in n for n in table.notes)
    assert any(note.startswith("Rows marked ours rest on different models") for note in table.notes)


def test_columns_on_other_cells_are_told(fitting: Any) -> None:
    runs = [fitting(), fitting("ila"), fitting(attack="mifgsm")]
    table = paper_table("paper-table3", runs)
    (note,) = (n for n in table.notes if n.startswith("The columns of No defense (ours)"))
    assert "I-FGSM: 2 models, 8 videos; MI-FGSM: 1 model, 8 videos" in note
    (check,) = table.checks[:1]
    assert "paper: Zhang LPIPS has another base than the other columns in 7 of 7 rows" in check


def test_own_rows_are_never_mixed_with_the_papers(fitting: Any, make_run: Any) -> None:
    runs = [fitting(), make_run(model="tiny"), make_run(model="tiny", attack="pgd", defense="jpeg")]
    strict = paper_table("paper-table3", runs)
    assert [head.key for head in strict.heads] == published.attacks3()
    assert any("2 runs: on motion, not kinetics400. --own-rows" in note for note in strict.notes)
    table = paper_table("paper-table3", runs, own_rows=True)
    assert [head.key for head in table.heads][7:] == ["pgd"]
    groups = {group.row: group for group in table.groups}
    assert [line.source for line in groups["No defense"].lines] == ["ours", "own"]
    assert [line.comparable for line in groups["No defense"].lines] == [True, False]
    assert groups["jpeg"].published == {}
    assert any("Lines marked own (tiny on motion) are not comparable" in n for n in table.notes)
    second = paper_table("paper-table2", runs, own_rows=True)
    assert [group.row for group in second.groups][19:] == ["tiny on motion"]


def test_an_empty_table_is_the_papers() -> None:
    for name in ("paper-table2", "paper-table3"):
        text = table_text(paper_table(name, []), "md")
        assert f"| ours | {MISSING} |" in text
        assert "nan" not in text


def test_markdown_has_the_papers_digits(fitting: Any) -> None:
    text = table_text(paper_table("paper-table2", [fitting()]), "md")
    assert "| AMD | paper | 77.75 | 72.55 | 21.34 | 7.51 | 44.83 | 0.9542 | 0.0582 |" in text
    assert (
        "|  | ours | 75.0 [40.9, 92.9] | 66.7 [30.0, 90.3] | 25.0 [7.1, 59.1] | 8 [8, 8] |" in text
    )
    assert "- check: robust = clean · (1 - ASR), paper" in text
    text = table_text(paper_table("paper-table3", [fitting()]), "md")
    assert "| No defense | paper | 5.2 / 93.0 | 7.8 / 89.5 |" in text


def test_csv_has_both_numbers_side_by_side(fitting: Any) -> None:
    run = fitting()
    text = table_text(paper_table("paper-table3", [run]), "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 49 * 2
    first = rows[0]
    assert (first["row"], first["column"], first["quantity"]) == (
        "No defense", "I-FGSM", "robust_accuracy",
    )  # fmt: skip
    assert (first["paper"], first["ours"], first["comparable"]) == ("0.052", "0.25", "yes")
    assert float(first["low"]) < 0.25 < float(first["high"])
    assert first["runs"] == run.name
    assert (rows[2]["ours"], rows[2]["missing"]) == ("", "no run")


def test_latex_is_balanced_and_escaped(fitting: Any) -> None:
    text = table_text(paper_table("paper-table2", [fitting(model="a_b")], own_rows=True), "latex")
    assert r"a\_b on kinetics400 & own &" in text
    assert text.count(r"\begin{") == text.count(r"\end{")
    assert text.count("{") == text.count("}")
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {line.count("&") - line.count(r"\&") for line in rows} == {11}
    assert MISSING not in text


def test_html_is_one_page_that_escapes(fitting: Any) -> None:
    pytest.importorskip("jinja2")
    text = table_text(paper_table("paper-table2", [fitting(model="<b>")], own_rows=True), "html")
    assert "&lt;b&gt; on kinetics400" in text
    assert "<b>" not in text
    assert "http" not in text.replace("http-equiv", "")


class TestCommand:
    def test_template_on_stdout_and_in_files(
        self, fitting: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        folder = str(fitting().folder)
        assert main(["report", folder, "--template", "paper-table2"]) == 0
        assert capsys.readouterr().out.startswith("# Table 2 of VCR-Bench, arXiv 2610.08936")
        out = tmp_path / "t3.tex"
        arguments = ["report", folder, "--template", "paper-table3", "--output", str(out)]
        assert main(arguments) == 0
        assert capsys.readouterr().out == f"{out}\n"
        assert r"\begin{table*}" in out.read_text("utf-8")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--template", "paper-table9"], "'paper-table9' is not one of"),
            (["--template", "paper-table2", "--format", "terminal"], "not written as 'terminal'"),
            (
                ["--template", "paper-table2", "--json"],
                "nor --output nor --template",
            ),
            (["--template", "paper-table2", "--output", "a.txt"], "the suffix does not tell"),
            (["--own-rows"], "--own-rows belongs to --template"),
        ],
    )
    def test_wrong_usage(
        self, fitting: Any, capsys: pytest.CaptureFixture[str], options: list[str], message: str
    ) -> None:
        assert main(["report", str(fitting().folder), *options]) == 2
        assert message in capsys.readouterr().err

    def test_library_names(self) -> None:
        with pytest.raises(UsageError, match="no template is called 'x'; there are: paper-table2"):
            paper_table("x", [])
