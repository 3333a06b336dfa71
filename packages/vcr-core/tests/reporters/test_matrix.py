"""Defenses against attacks: the right rate in the right place, in every format."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import pytest
from vcr_core.reporters.cells import MISSING
from vcr_core.reporters.latex import LatexReporter
from vcr_core.reporters.markdown import MarkdownReporter
from vcr_core.reporters.matrix import LEGEND, LEGEND_MEAN, LEGEND_REVERSED, Matrix, Score, matrices
from vcr_core.reporters.remarks import remarks
from vcr_core.reporters.rows import paired_rows
from vcr_core.reporters.table_csv import CsvReporter


def videos(records: Any, held: int, kept: int | None, right: int = 6) -> list[dict[str, Any]]:
    """8 videos of which the bare model gets ``right`` right before and ``held`` after the attack.

    The defended model, if ``kept`` says how many it gets right after it, errs on one more before.
    """
    return [
        records.video(
            f"v{i}",
            right=i < right,
            held=i < held,
            defended=None if kept is None else (i < right - 1, i < kept),
        )
        for i in range(8)
    ]


@pytest.fixture
def duel(make_run: Any, records: Any) -> Any:
    """Runs of one attack: bare 2 of 8; behind the defense 5 if it is not known, 1 if it is."""

    def make(attack: str = "pgd", model: str = "tiny", known: int = 1) -> list[Any]:
        options = {"attack": attack, "model": model}
        return [
            make_run(**options, records=videos(records, 2, None)),
            make_run(**options, records=videos(records, 2, 5), defense="jpeg", adaptive=False),
            make_run(**options, records=videos(records, 3, known), defense="jpeg", adaptive=True),
        ]

    return make


def made(*runs: Any) -> list[Matrix]:
    return matrices(paired_rows(runs))


def values(score: Score | None) -> tuple[float | None, float | None, bool]:
    assert score is not None
    return score.accuracy.value, score.asr.value, score.lower


def test_cells_are_those_of_the_whole_system(duel: Any) -> None:
    (matrix,) = made(*duel())
    assert matrix.title == "tiny on motion"
    assert matrix.attacks == (("pgd", "L∞ 8/255"),)
    bare, jpeg = matrix.lines
    assert (bare.defense, bare.clean.value) == ("no defense", 6 / 8)
    assert values(bare.duels[0].unaware) == (2 / 8, 4 / 6, True)
    assert bare.duels[0].adaptive is None
    assert (jpeg.defense, jpeg.clean.value) == ("jpeg", 5 / 8)
    assert values(jpeg.duels[0].unaware) == (5 / 8, 0, False)
    assert values(jpeg.duels[0].adaptive) == (1 / 8, 4 / 5, True)
    assert matrix.legends == (LEGEND,)


@pytest.mark.golden
def test_the_papers_identity_holds_in_every_cell(duel: Any) -> None:
    """Table 3: robust accuracy = clean accuracy of the system · (1 - attack success)."""
    for matrix in made(*duel(), *duel(model="other", known=3)):
        for line in matrix.lines:
            for score in (line.duels[0].unaware, line.duels[0].adaptive):
                if score is not None:
                    accuracy, asr, _ = values(score)
                    assert accuracy is not None
                    assert asr is not None
                    assert line.clean.value is not None
                    assert accuracy == pytest.approx(line.clean.value * (1 - asr))


def test_an_attack_that_does_better_unaware_is_marked(duel: Any) -> None:
    first, second, third = duel()
    third.manifest["protocol_of_the_day"] = 1
    runs = [first, third, second]
    (plain,) = made(*runs)
    assert plain.lines[1].duels[0].adaptive is not None
    assert not plain.lines[1].duels[0].adaptive.reversed
    masked = duel(known=5)
    weak = masked[1]
    weak.summary["definitions"]["defended_robust_accuracy"]["value"] = 1 / 8
    (matrix,) = made(*masked)
    pair = matrix.lines[1].duels[0]
    assert pair.adaptive is not None
    assert pair.adaptive.reversed
    assert values(pair.unaware)[::2] == (1 / 8, True)
    assert LEGEND_REVERSED in matrix.legends
    assert "†" in MarkdownReporter().text(masked)


def test_models_have_their_own_and_the_mean_comes_first(duel: Any) -> None:
    mean, other, tiny = made(*duel(), *duel(model="other", known=3))
    assert [m.title for m in (mean, other, tiny)] == [
        "Mean over 2 models on motion", "other on motion", "tiny on motion",
    ]  # fmt: skip
    assert mean.is_mean
    assert mean.legends[-1] == LEGEND_MEAN
    score = mean.lines[1].duels[0].adaptive
    assert score is not None
    assert score.accuracy.value == pytest.approx((1 + 3) / 16)
    assert score.asr.value == pytest.approx((4 + 2) / 10)
    assert score.accuracy.low is not None
    assert score.accuracy.low < score.accuracy.value < (score.accuracy.high or 0)
    assert score.run == ""


def test_the_mean_is_over_places_that_every_model_has(duel: Any) -> None:
    mean, *_ = made(*duel(), *duel(attack="ifgsm"), *duel(model="other"))
    assert mean.attacks == (("pgd", "L∞ 8/255"),)
    alone = made(*duel(), *duel(model="other", attack="ifgsm"))
    assert [m.is_mean for m in alone] == [False, False]


def test_there_is_none_without_a_defense_that_was_attacked(make_run: Any, duel: Any) -> None:
    assert made(make_run(), make_run(attack=None), make_run(attack=None, defense="jpeg")) == []
    bare, unaware, _ = duel()
    (matrix,) = made(bare, unaware)
    assert (matrix.has_unaware, matrix.has_adaptive) == (True, False)


def test_missing_places_are_shown_as_missing(make_run: Any, records: Any, duel: Any) -> None:
    blur = make_run(attack="ifgsm", records=videos(records, 2, 5), defense="blur", adaptive=False)
    runs = [*duel(), duel(attack="ifgsm")[0], blur]
    (matrix,) = made(*runs)
    assert [attack for attack, _ in matrix.attacks] == ["ifgsm", "pgd"]
    assert matrix.lines[2].duels[0].unaware is None
    text = MarkdownReporter().text(runs)
    assert re.search(rf"\| jpeg \| [^|]+ \| {MISSING} \| {MISSING} \|", text)


def test_markdown_shows_both_kinds_side_by_side(duel: Any) -> None:
    text = MarkdownReporter().text(duel())
    table = text[text.index("### tiny on motion") :].splitlines()
    assert table[2] == "| Defense | Clean % | pgd, L∞ 8/255, unaware | pgd, L∞ 8/255, adaptive |"
    assert table[5].startswith("| jpeg | 62.5 [30.6, 86.3] | 62.5 [30.6, 86.3] / 0.0 [")
    assert "**12.5** [2.2, 47.1] / 80.0 [" in table[5]
    assert table[4].count("**25.0**") == 2  # without a defense there is nothing to know


def test_csv_has_the_defended_success_of_unaware_attacks(duel: Any) -> None:
    rows = list(csv.DictReader(io.StringIO(CsvReporter().text(duel()))))
    found = {(r["defense"], r["adaptive"]): r["defended_asr_untargeted"] for r in rows}
    assert found == {("none", ""): "", ("jpeg", "no"): "0.0", ("jpeg", "yes"): "0.8"}


def test_the_page_links_every_cell_to_its_run(duel: Any) -> None:
    pytest.importorskip("jinja2")
    from vcr_core.reporters.html import HtmlReporter

    text = HtmlReporter().text(duel())
    section = text[text.index('<section id="matrix"') :]
    section = section[: section.index("</section>")]
    for anchor in re.findall(r'href="#(run-\d+)"', section):
        assert f'id="{anchor}"' in text
    assert len(re.findall(r'href="#run-', section)) == 3
    assert section.count('class="lower"') == 2
    assert 'colspan="2"' in section


def test_latex_has_the_papers_layout(duel: Any, make_run: Any) -> None:
    text = LatexReporter().text(duel())
    assert r"\begin{tabular}{lrrr}" in text
    assert r"\multicolumn{2}{c}{pgd, L$_\infty$ 8/255} \\" in text
    rows = {line.partition(" & ")[0]: line for line in text.splitlines() if " & " in line}
    assert (
        r"\multicolumn{2}{c}{\textbf{25.0} {\scriptsize [7.1, 59.1]} / 66.7 {" in rows["no defense"]
    )
    assert rows["jpeg"].count(" / ") == 2
    assert r"\textbf{12.5}" in rows["jpeg"]
    assert r"\textbf{62.5}" not in rows["jpeg"]
    spans = {row.count(" & ") + row.count(r"\multicolumn{2}") for row in rows.values()}
    assert spans == {3}
    assert text.count("{") == text.count("}")
    plain = LatexReporter().text([make_run(model="a_b"), make_run(attack=None)])
    assert r"a\_b" in plain
    assert "Robust" in plain


def test_runs_that_take_an_attack_over_are_counted(duel: Any) -> None:
    bare, unaware, adaptive = duel()
    unaware.records[3]["notes"] = ["reused: the attack of run motion-tiny"]
    said = remarks(paired_rows([bare, unaware, adaptive]))
    assert "1 run judges videos that the attack of another run made" in " ".join(said)
    assert "judge" not in " ".join(remarks(paired_rows([bare, adaptive])))


def test_attacks_that_no_defense_met_are_named_below(duel: Any) -> None:
    runs = [*duel(), duel(attack="ifgsm")[0]]
    (matrix,) = made(*runs)
    assert [attack for attack, _ in matrix.attacks] == ["pgd"]
    assert matrix.unmet == (("ifgsm", "L∞ 8/255"),)
    assert "no defense has a number for it: ifgsm, L∞ 8/255." in MarkdownReporter().text(runs)
