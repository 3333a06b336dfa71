from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from vcr_core.reporters.markdown import MarkdownReporter
from vcr_core.reporters.rows import make_rows
from vcr_core.reporters.table_csv import CsvReporter


@pytest.fixture
def standing(make_run: Any, records: Any) -> Any:
    """Make a run in which ``kept`` of 8 videos stay right."""

    def make(model: str, attack: str, kept: int, lpips: float | None = None, **options: Any) -> Any:
        defended = (True, False) if options.get("defense") else None
        metrics = {"psnr": {"value": 40.0}} | ({"lpips": {"value": lpips}} if lpips else {})
        made = [
            records.video(f"v{i}", right=True, held=i < kept, metrics=metrics, defended=defended)
            for i in range(8)
        ]
        for i, record in enumerate(made):
            if defended:
                record["attacked_defended"][0]["pred"] = 0 if i < kept else 1
        return make_run(model=model, attack=attack, records=made, **options)

    return make


def extras(runs: list[Any], name: str) -> dict[str, float | None]:
    return {row.run: row.extras[name].value for row in make_rows(runs) if name in row.extras}


def test_mean_ranks_are_over_the_attacks_that_all_met(standing: Any) -> None:
    runs = [
        standing("a", "ifgsm", 6), standing("b", "ifgsm", 4), standing("c", "ifgsm", 4),
        standing("a", "pgd", 1), standing("b", "pgd", 3), standing("c", "pgd", 2),
        # Not every system met this one.
        standing("a", "square", 8), standing("b", "square", 0),
    ]  # fmt: skip
    found = {row.model: row.extras["mean_rank"] for row in make_rows(runs)}
    assert {model: cell.value for model, cell in found.items()} == {"a": 2.0, "b": 1.75, "c": 2.25}
    assert {cell.n for cell in found.values()} == {2}


def test_a_system_counts_with_the_worse_of_its_attacks(standing: Any) -> None:
    attacks = ("ifgsm", "pgd")
    runs = [
        *(standing("a", attack, 3) for attack in attacks),
        *(standing("a", attack, 5, defense="median", adaptive=False) for attack in attacks),
        *(standing("a", attack, 2, defense="median") for attack in attacks),
    ]
    found = {row.defense: row.extras["mean_rank"].value for row in make_rows(runs)}
    assert found == {"none": 1.0, "median": 2.0}


def test_ranks_need_two_systems_and_two_common_cells(standing: Any) -> None:
    assert extras([standing("a", "ifgsm", 6), standing("b", "ifgsm", 4)], "mean_rank") == {}
    assert extras([standing("a", "ifgsm", 6), standing("a", "pgd", 4)], "mean_rank") == {}


def test_other_videos_are_another_cell(standing: Any) -> None:
    runs = [standing(model, attack, 4) for model in "ab" for attack in ("ifgsm", "pgd")]
    assert len(extras(runs, "mean_rank")) == 4
    runs[0].manifest["dataset"]["fingerprint"] = "other"
    assert extras(runs, "mean_rank") == {}


def test_the_pareto_front_of_an_attack(standing: Any) -> None:
    runs = [
        standing("best", "ifgsm", 6, 0.1),
        standing("beaten", "ifgsm", 6, 0.2),
        standing("finer", "ifgsm", 5, 0.05),
        standing("unknown", "ifgsm", 8),
        standing("elsewhere", "pgd", 0, 0.9),
    ]
    found = {name.split("-")[1]: value for name, value in extras(runs, "pareto_front").items()}
    assert found == {"best": 1.0, "beaten": 0.0, "finer": 1.0}


def test_reports_have_the_columns_and_say_what_they_are(standing: Any) -> None:
    runs = [standing(m, a, k, 0.1) for m, k in (("a", 6), ("b", 4)) for a in ("ifgsm", "pgd")]
    text = MarkdownReporter().text(runs)
    assert "| Mean rank | Pareto front |" in text
    assert "Mean rank: systems ranked by robust accuracy" in text
    rows = list(csv.DictReader(io.StringIO(CsvReporter().text(runs))))
    assert {row["model"]: row["mean_rank"] for row in rows} == {"a": "1.0", "b": "2.0"}
    assert {row["model"]: row["pareto_front"] for row in rows} == {"a": "1.0", "b": "0.0"}
