from __future__ import annotations

from typing import Any

import pytest
from vcr_core.reporters.cells import Cell
from vcr_core.reporters.html import HtmlReporter
from vcr_core.reporters.latex import LatexReporter
from vcr_core.reporters.markdown import MarkdownReporter
from vcr_core.reporters.matrix import Score
from vcr_core.reporters.models_table import ModelsTable, models_tables
from vcr_core.reporters.rows import paired_rows


@pytest.fixture
def runs(make_run: Any, records: Any) -> list[Any]:
    def held(count: int) -> list[Any]:
        return [records.video(f"v{i}", right=i < 6, held=i < count) for i in range(8)]

    return [
        make_run(model="a_1", attack="ifgsm", records=held(4)),
        make_run(model="a_1", attack="pgd", records=held(1)),
        make_run(model="b", attack="pgd", records=held(3)),
        make_run(model="b", attack="pgd", defense="median"),
        make_run(model="b", attack=None),
    ]


def table_of(runs: list[Any]) -> ModelsTable:
    (table,) = models_tables(paired_rows(runs))
    return table


def test_models_meet_attacks_and_the_strongest_is_in_bold(runs: list[Any]) -> None:
    table = table_of(runs)
    assert table.corner == "Model"
    assert [name for name, _ in table.heads] == ["Clean %", "ifgsm", "pgd"]
    first, second = table.lines
    clean, weak, strong = first.cells
    assert isinstance(clean, Cell)
    assert (first.name, clean.value) == ("a_1", 6 / 8)
    assert isinstance(weak, Score)
    assert isinstance(strong, Score)
    assert (weak.accuracy.value, weak.asr.value, weak.lower) == (4 / 8, 2 / 6, False)
    assert (strong.accuracy.value, strong.lower, strong.run) == (1 / 8, True, runs[1].name)
    assert second.cells[1] is None
    assert second.cells[2] is not None


def test_more_attacks_than_models_are_lines(runs: list[Any], make_run: Any) -> None:
    table = table_of([*runs, make_run(model="b", attack="square", eps=4 / 255)])
    assert table.corner == "Attack"
    assert [name for name, _ in table.heads] == ["a_1", "b"]
    assert [(line.name, line.under) for line in table.lines] == [
        ("no attack", ""), ("ifgsm", "L∞ 8/255"), ("pgd", "L∞ 8/255"), ("square", "L∞ 4/255"),
    ]  # fmt: skip
    assert [isinstance(cell, Cell) for cell in table.lines[0].cells] == [True, True]
    assert table.lines[1].cells[1] is None
    pgd = table.lines[2].cells[0]
    assert isinstance(pgd, Score)
    assert pgd.lower


def test_one_model_or_one_attack_makes_no_table(runs: list[Any]) -> None:
    assert models_tables(paired_rows(runs[:2])) == []
    assert models_tables(paired_rows(runs[1:])) == []


def test_all_formats_say_the_same(runs: list[Any]) -> None:
    pytest.importorskip("jinja2")
    markdown = MarkdownReporter().text(runs)
    latex = LatexReporter().text(runs)
    page = HtmlReporter().text(runs)
    assert r"| a\_1 | 75.0 [40.9, 92.9] | 50.0 [21.5, 78.5] / 33.3" in markdown
    assert "**12.5** [2.2, 47.1] / 83.3" in markdown
    assert r"a\_1 & 75.0" in latex
    assert r"\textbf{12.5}" in latex
    assert 'class="lower">12.5</a>' in page
    assert page.index('id="models"') < page.index('id="matrix"')
