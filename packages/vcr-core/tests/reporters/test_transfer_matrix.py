"""Transfer matrices: rates on a hand-made table, in every format, and nowhere else."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from rich.console import Console
from vcr_core import definitions, outcomes
from vcr_core.health import comparative_flags
from vcr_core.leaderboard.record_checks import check_consistency
from vcr_core.paper.filling import place
from vcr_core.reporters.latex import LatexReporter
from vcr_core.reporters.markdown import MarkdownReporter
from vcr_core.reporters.matrix import matrices
from vcr_core.reporters.models_table import models_tables
from vcr_core.reporters.robustness_text import draw
from vcr_core.reporters.rows import paired_rows
from vcr_core.reporters.sections import further_sections
from vcr_core.reporters.table_csv import CsvReporter
from vcr_core.reporters.transfer_matrix import (
    LEGEND_DEFENDED,
    TITLE,
    plain_matrices,
    transfer_matrices,
    transfer_report,
)
from vcr_core.run_pairs import match_runs, select
from vcr_core.tables import record_columns, record_row

BOTH = [
    # source right before and after, evaluated model right before and after
    ((True, False), (True, False)),
    ((True, False), (True, False)),
    ((True, True), (True, False)),
    ((True, False), (True, True)),
    ((True, False), (True, True)),
    ((True, False), (False, False)),
    ((False, False), (True, True)),
    ((False, False), (False, False)),
]
"""5 videos that both have right, 3 of which the evaluated model loses; the source 5 of 6."""


@pytest.fixture
def shown(records: Any) -> list[dict[str, Any]]:
    """Records of a run with a source, by :data:`BOTH`."""
    return [
        records.video(f"v{i}", right=model[0], held=model[1], source=source)
        for i, (source, model) in enumerate(BOTH)
    ]


@pytest.fixture
def matrix_runs(make_run: Any, shown: Any) -> list[Any]:
    """White-box runs of two models and one attack shown from the first to the second."""
    return [
        make_run(model="a"),
        make_run(model="b"),
        make_run(model="b", source="a", records=shown),
    ]


class TestRates:
    def test_of_videos_that_both_had_right(self, shown: Any) -> None:
        found = definitions.evaluate("transfer_rate", shown)
        assert (found["k"], found["n"], found["value"]) == (3, 5, 0.6)
        low, high = found["ci95"]
        assert (round(low, 4), round(high, 4)) == (0.2307, 0.8824)  # Wilson, 3 of 5
        source = definitions.evaluate("source_asr", shown)
        assert (source["k"], source["n"]) == (5, 6)
        # Over all that the evaluated model had right, whether or not there was an attack on it.
        assert definitions.evaluate("asr_untargeted", shown)["n"] == 6

    def test_behind_a_defense(self, records: Any) -> None:
        found = [
            records.video(f"v{i}", right=True, held=i > 0, defended=pair, source=(True, False))
            for i, pair in enumerate([(True, True), (True, False), (False, False)])
        ]
        rate = definitions.evaluate("defended_transfer_rate", found)
        assert (rate["k"], rate["n"]) == (1, 2)

    def test_of_a_target(self, records: Any) -> None:
        found = [
            records.video(f"v{i}", right=right, held=held, target=1, source=(True, False))
            for i, (right, held) in enumerate([(True, False), (True, True), (False, False)])
        ]
        found[2]["source"]["attacked"]["pred"] = 5
        for record in found:
            record["source"]["target"] = 1
        rate = definitions.evaluate("transfer_rate_targeted", found)
        assert (rate["k"], rate["n"]) == (1, 2)
        own = definitions.evaluate("source_asr_targeted", found)
        assert (own["k"], own["n"]) == (2, 3)

    def test_only_runs_with_a_source_have_them(self, make_run: Any, records: Any) -> None:
        run = make_run()
        assert not {"transfer_rate", "source_asr"} & set(run.summary["definitions"])
        record = records.video("v", right=True, held=False)
        assert outcomes.source_right(record) is None
        assert definitions.terms("transfer_rate", [record]) == {}


class TestMatrix:
    def test_rows_are_attacked_columns_are_shown(self, matrix_runs: Any) -> None:
        (matrix,) = transfer_matrices(paired_rows(matrix_runs))
        assert (matrix.sources, matrix.models) == (["a"], ["a", "b"])
        assert matrix.title == "Transfer of ifgsm, L∞ 8/255, on motion"
        cell = matrix.rate("a", "b")
        assert (cell.value, cell.k, cell.n) == (0.6, 3, 5)
        own = matrix.rate("a", "a")
        # The run of the source itself: 6 right before, of which 2 stay.
        assert (own.k, own.n) == (4, 6)
        assert matrix.runs["a", "a"] == matrix_runs[0].name

    def test_without_the_sources_own_run_its_records_tell(self, matrix_runs: Any) -> None:
        (matrix,) = transfer_matrices(paired_rows(matrix_runs[1:]))
        assert (matrix.rate("a", "a").k, matrix.rate("a", "a").n) == (5, 6)
        assert ("a", "a") not in matrix.runs

    def test_what_differs_is_another_matrix(self, make_run: Any, matrix_runs: Any) -> None:
        more = [
            make_run(model="b", source="a", attack="pgd"),
            make_run(model="b", source="a", eps=4 / 255),
            make_run(model="b", source="a", defense="jpeg", adaptive=False),
        ]
        found = transfer_matrices(paired_rows([*matrix_runs, *more]))
        assert [(m.attack, m.threat, m.defense) for m in found] == [
            ("ifgsm", "L∞ 4/255", "none"),
            ("ifgsm", "L∞ 8/255", "none"),
            ("ifgsm", "L∞ 8/255", "jpeg"),
            ("pgd", "L∞ 8/255", "none"),
        ]
        # What is not told of the source, as by these records, is missing, and so is its own run
        # behind the defense.
        assert [m.rate("a", "a").n for m in found] == [None, 6, None, None]
        report = transfer_report(paired_rows([*matrix_runs, *more]))
        assert report is not None
        notes = {table.title: table.notes for table in report.side_by_side}
        every = [note for table in report.side_by_side for note in table.notes]
        assert len(every) == len(set(every))
        assert LEGEND_DEFENDED in notes["Transfer of ifgsm, L∞ 8/255, on motion, behind jpeg"]

    def test_behind_a_defense_the_diagonal_is_there_too(self, make_run: Any, records: Any) -> None:
        def videos(source: tuple[bool, bool] | None) -> list[dict[str, Any]]:
            # The bare model has 6 right, of which it keeps 2; behind the defense 7, and 4.
            return [
                records.video(
                    f"v{i}", right=i < 6, held=i < 2, defended=(i > 0, i > 3), source=source
                )
                for i in range(8)
            ]

        behind: dict[str, Any] = {"defense": "jpeg", "adaptive": False}
        runs = [
            make_run(model="a", records=videos(None), **behind),
            make_run(model="a", records=videos(None), defense="jpeg"),
            make_run(model="b", source="a", records=videos((True, False)), **behind),
        ]
        (matrix,) = transfer_matrices(paired_rows(runs))
        own, shown = matrix.rate("a", "a"), matrix.rate("a", "b")
        assert (own.k, own.n) == (3, 5)  # both right: 1 to 5; wrong afterwards: 1, 2 and 3
        assert (shown.k, shown.n) == (3, 7)
        assert matrix.runs["a", "a"] == runs[0].name

    def test_without_transfer_there_is_nothing(self, make_run: Any) -> None:
        runs = [make_run(), make_run(model="b")]
        assert transfer_report(paired_rows(runs)) is None
        assert plain_matrices(runs) == {}

    def test_every_format_has_it(self, matrix_runs: Any) -> None:
        text = MarkdownReporter().text(matrix_runs)
        assert f"## {TITLE}" in text
        assert "| a | 66.7 [30.0, 90.3] (itself, n = 6) | 60.0 [23.1, 88.2] (n = 5) |" in text
        assert r"60.0 {\scriptsize [23.1, 88.2]} {\scriptsize n = 5}" in LatexReporter().text(
            matrix_runs
        )
        console = Console(width=120, file=io.StringIO())
        report = transfer_report(paired_rows(matrix_runs))
        assert report is not None
        draw(report, console)
        assert "Attacked model" in console.file.getvalue()  # type: ignore[attr-defined]
        (plain,) = plain_matrices(matrix_runs)["transfer"]
        assert {(c["source"], c["model"], c["n"], c["itself"]) for c in plain["cells"]} == {
            ("a", "a", 6, True),
            ("a", "b", 5, False),
        }
        anchors = [section.anchor for section in further_sections(paired_rows(matrix_runs))]
        assert "transfer" in anchors

    def test_the_page_shows_it(self, matrix_runs: Any) -> None:
        pytest.importorskip("jinja2")
        from vcr_core.reporters.html import HtmlReporter

        page = HtmlReporter().text(matrix_runs)
        assert '<section id="transfer"' in page
        assert "Transfer of ifgsm, L∞ 8/255, on motion" in page
        assert "ifgsm on a" in page


class TestKeptApart:
    def test_the_source_stands_in_the_attack_column(self, matrix_runs: Any) -> None:
        rows = list(csv.DictReader(io.StringIO(CsvReporter().text(matrix_runs))))
        assert [(r["model"], r["attack"], r["source"]) for r in rows] == [
            ("a", "ifgsm", ""),
            ("b", "ifgsm", ""),
            ("b", "ifgsm on a", "a"),
        ]
        assert rows[2]["transfer_rate"] == "0.6"

    def test_tables_of_models_and_bars_have_white_box_runs_alone(
        self, make_run: Any, matrix_runs: Any, shown: Any
    ) -> None:
        more = [make_run(model=m, attack="pgd") for m in "ab"]
        (table,) = models_tables(paired_rows([*matrix_runs, *more]))
        assert [head[0] for head in table.heads] == ["Clean %", "ifgsm", "pgd"]
        # Two models that were shown the same attack are no comparison of systems under attack.
        runs = [make_run(model=m, source="a", records=shown) for m in "bc"]
        anchors = [section.anchor for section in further_sections(paired_rows(runs))]
        assert not {"bars", "queries", "cost"} & set(anchors)

    def test_a_matrix_of_defenses_names_the_source(
        self, make_run: Any, records: Any, shown: Any
    ) -> None:
        behind, own = (
            [
                records.video(
                    f"v{i}", right=True, held=False, defended=(i < right, False), source=source
                )
                for i in range(8)
            ]
            for right, source in ((8, (True, False)), (6, None))
        )
        defended: dict[str, Any] = {"model": "b", "defense": "jpeg", "adaptive": False}
        runs = [
            make_run(model="b", source="a", records=shown),
            make_run(source="a", records=behind, **defended),
            make_run(attack="pgd", records=own, **defended),
        ]
        (matrix,) = matrices(paired_rows(runs))
        assert [attack for attack, _ in matrix.attacks] == ["ifgsm on a", "pgd"]
        # Clean accuracy is that on the frames that the model samples by itself.
        (line,) = (line for line in matrix.lines if line.defense == "jpeg")
        assert line.clean.value == 0.75

    def test_stronger_white_box_runs_are_no_sign_of_masking(self, matrix_runs: Any) -> None:
        assert comparative_flags(matrix_runs) == {}

    def test_runs_are_compared_by_source(self, make_run: Any, shown: Any) -> None:
        runs = [make_run(model="b"), make_run(model="b", source="a", records=shown)]
        assert select(runs, ["source=a"]) == runs[1:]
        assert select(runs, ["source=none"]) == runs[:1]
        pair = match_runs(runs[:1], runs[1:])
        assert pair.varied == ("attack",)
        assert pair.pairs[0].label == "ifgsm → ifgsm on a"

    def test_published_tables_have_no_place_for_it(self, make_run: Any, shown: Any) -> None:
        run = make_run(
            model="b", source="a", records=shown,
            experiment={
                "dataset": {"name": "kinetics400"}, "model": {"name": "x3d.m-k400"},
                "source": {"name": "a"}, "attack": {"name": "ifgsm"},
                "threat": {"norm": "linf", "eps": 8 / 255, "targeted": True},
            },
        )  # fmt: skip
        assert "attacked on another model" in place(run).reason

    def test_a_table_of_records_says_what_the_source_said(self, shown: Any, records: Any) -> None:
        row = record_row(shown[0], ["x", "y"])
        assert (row["source_label"], row["source_clean_pred"]) == (0, 0)
        assert row["source_attacked_pred"] == 1
        assert "source_label" in record_columns(shown)
        assert "source_label" not in record_columns([records.video("v", right=True, held=True)])


class TestChecks:
    def problems(self, make_run: Any, found: list[dict[str, Any]]) -> str:
        run = make_run(model="b", source="a", records=found)
        return check_consistency(found, run.manifest).detail

    def test_records_of_a_transfer_run_agree_with_themselves(
        self, make_run: Any, shown: Any
    ) -> None:
        for record in shown:
            for corner in (record["clean"], record["attacked"]):
                corner["p_pred"] = corner["p_label"] if corner["pred"] == 0 else 0.8
            if record["status"] == "ok":
                wrong = int(record["attacked"]["pred"] != 0)
                record["success"] = {"changed": bool(wrong), "n": wrong, "of": 1}
            else:
                record.pop("success")
        run = make_run(model="b", source="a", records=shown)
        assert check_consistency(shown, run.manifest).outcome == "passed"
        shown[5]["source"]["clean"]["pred"] = 1
        assert "the source was wrong before" in self.problems(make_run, shown[5:6])
        shown[0]["source"]["success"]["changed"] = False
        assert "success on the source" in self.problems(make_run, shown[:1])
        shown[6]["source"]["clean"]["pred"] = 0
        assert "the source was right before" in self.problems(make_run, shown[6:7])
        del shown[1]["source"]
        assert "without a prediction of that model" in self.problems(make_run, shown[1:2])
