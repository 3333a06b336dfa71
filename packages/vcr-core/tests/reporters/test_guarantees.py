"""Abstentions, certificates, detection and the worse of two attacks in every report."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from vcr_core.reporters.extras import certificate_scope
from vcr_core.reporters.flat import delimited
from vcr_core.reporters.guarantees import certified_panels
from vcr_core.reporters.html import HtmlReporter
from vcr_core.reporters.markdown import MarkdownReporter
from vcr_core.reporters.rows import make_rows, paired_rows
from vcr_core.reporters.terminal import draw_table

DIMS = 16 * 3 * 224 * 224


def certify(record: dict[str, Any], radius: float, sigma: float = 0.25) -> dict[str, Any]:
    certificate = {
        "class": 0 if radius else None, "radius": radius, "p_lower": 0.9 if radius else 0.3,
        "count": 950, "n0": 100, "n": 1000, "alpha": 0.001, "sigma": sigma, "norm": "l2",
        "dims": DIMS,
    }  # fmt: skip
    defended = {**record["clean_defended"], "abstained": not radius}
    return {**record, "clean_defended": defended, "certificate": certificate}


@pytest.fixture
def certified(make_run: Any, records: Any) -> Any:
    """A run of four videos with certificates: 0.1, 0.3, 0.5 and none."""

    def make(**changes: Any) -> Any:
        def video(number: int, radius: float) -> dict[str, Any]:
            pair = (radius > 0, True)
            return certify(
                records.video(f"v{number}", right=True, held=None, defended=pair), radius
            )

        videos = [video(i, radius) for i, radius in enumerate((0.1, 0.3, 0.5, 0.0))]
        return make_run(attack=None, defense="smooth", records=videos, **changes)

    return make


def test_columns_and_legends_in_markdown(certified: Any) -> None:
    text = MarkdownReporter().text([certified()])
    header = next(line for line in text.splitlines() if line.startswith("| Model"))
    for title in ("Abstains, clean %", "Certified %", "ACR (L2)"):
        assert title in header
    row = next(line for line in text.splitlines() if line.startswith("| tiny"))
    assert " 75.0 [30.1, 95.4] " in row
    assert " 0.225 [" in row
    assert "An abstention counts as wrong in accuracies and as no success" in text
    # The radius is never shown without what it is worth per pixel and in L∞.
    assert "levels RMS over the 2408448 values of a video" in text
    assert "an L∞ budget of 8/255 has an L2 norm of up to 48.69" in text


def test_runs_without_them_have_no_such_column(make_run: Any) -> None:
    text = MarkdownReporter().text([make_run(), make_run(defense="jpeg")])
    for word in ("Certified", "Abstains", "AUROC", "Worse of both"):
        assert word not in text
    assert "certified_accuracy" not in delimited(make_rows([make_run()]), delimiter=",", missing="")


def test_machine_readable_columns(certified: Any) -> None:
    text = delimited(make_rows([certified()]), delimiter=",", missing="")
    [row] = csv.DictReader(io.StringIO(text))
    assert row["certified_accuracy"] == "0.75"
    assert row["average_certified_radius"] == "0.225"
    assert row["clean_abstention_rate"] == "0.25"


def test_terminal_shows_them(certified: Any) -> None:
    console_module = pytest.importorskip("rich.console")
    stream = io.StringIO()
    draw_table(make_rows([certified()]), console_module.Console(file=stream, width=250))
    assert "Certified %" in stream.getvalue()
    assert "so these certificates say nothing about it" in " ".join(stream.getvalue().split())


def test_page_has_curve_facts_and_table(certified: Any) -> None:
    pytest.importorskip("jinja2")
    page = HtmlReporter().text([certified(), certified(model="other")])
    assert 'id="certified"' in page
    assert "Certified accuracy over the L2 radius" in page
    assert "smooth, sigma 0.25, n 1000" in page
    assert "radius 0.3: 25.0 % [4.6, 69.9] (1/4)" in page
    assert "<dt>largest possible radius</dt><dd>0.616</dd>" in page
    assert "certificates say nothing about it" in page


def test_a_system_is_one_curve_whatever_attacks_it(certified: Any, make_run: Any) -> None:
    runs = [certified(), certified(), certified(model="other"), make_run()]
    series, panels = certified_panels(paired_rows(runs))
    assert [one.label for one in series] == ["smooth, sigma 0.25, n 1000"]
    assert [(panel.title, len(panel.lines)) for panel in panels] == [("other", 1), ("tiny", 1)]
    assert panels[0].what == "Certified accuracy"
    heights = [point.y for point in panels[0].lines[0].points]
    assert heights == sorted(heights)


def test_what_radii_are_worth_without_a_common_size() -> None:
    assert certificate_scope([{"dims": None, "largest_radius": 0.5}]) == (
        "L2 radii say nothing about L∞ budgets."
    )


def test_detection_in_page_and_table(make_run: Any, records: Any) -> None:
    pytest.importorskip("jinja2")

    def scored(number: int) -> dict[str, Any]:
        record = records.video(f"v{number}", right=True, held=False, defended=(True, False))
        clean = {**record["clean_defended"], "score": number / 10, "rejected": False}
        attacked = {**record["attacked_defended"][0], "score": 0.35 + number / 10, "rejected": True}
        return {**record, "clean_defended": clean, "attacked_defended": [attacked]}

    run = make_run(defense="advit", adaptive=False, records=[scored(i) for i in range(8)])
    text = MarkdownReporter().text([run])
    assert "| AUROC |" in text
    assert "at most 5 % of the clean ones exceed" in text
    page = HtmlReporter().text([run])
    assert "AUROC, successful attacks" in page
    assert "TPR at 5 % FPR, all attacked videos" in page


def test_the_worse_of_a_pair_is_shown_beside_both(make_run: Any, records: Any) -> None:
    def outcome(kept: int) -> list[dict[str, Any]]:
        return [
            records.video(f"v{i}", right=True, held=False, defended=(True, i < kept))
            for i in range(50)
        ]

    adaptive = make_run(defense="jpeg", records=outcome(40))
    unaware = make_run(defense="jpeg", adaptive=False, records=outcome(30))
    text = MarkdownReporter().text([adaptive, unaware])
    assert "| Worse of both % |" in text
    assert text.count(" 60.0 [46.2, 72.4] ") == 3
    assert "unaware-beats-adaptive" in text
    assert "It is the one to quote." in text
