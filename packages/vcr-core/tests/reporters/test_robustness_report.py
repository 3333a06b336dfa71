"""Natural shifts, corruptions and tampering in reports: the right number, in every format."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("numpy")

from vcr_core.cli.report import command
from vcr_core.errors import UsageError
from vcr_core.reporters import robustness, robustness_text
from vcr_core.reporters.html import HtmlReporter
from vcr_core.reporters.latex import LatexReporter
from vcr_core.reporters.markdown import MarkdownReporter
from vcr_core.reporters.robustness import RobustnessReport, Table, robustness_report
from vcr_core.reporters.rows import paired_rows

SUITE = {"name": "two", "version": "1", "types": 2, "severities": 1}


def part(name: str, tags: list[str], params: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    """The components of a run whose attack asks nothing."""
    return [
        {
            "role": "attack", "ref": f"vcr-attacks/{name}", "access": "none", "tags": tags,
            "params": params, **more,
        }
    ]  # fmt: skip


@pytest.fixture
def world(make_run: Any, records: Any) -> Any:
    """Runs of models on 8 videos: clean, two attacks, a shift, a suite of two, one operator."""

    def run(model: str, name: str | None, right: int, held: int | None, **options: Any) -> Any:
        found = [
            records.video(f"v{i}", right=i < right, held=None if held is None else i < held)
            for i in range(8)
        ]
        return make_run(model=model, attack=name, records=found, **options)

    def make(model: str = "m", right: int = 6, kept: int = 4, hue: bool = True) -> list[Any]:
        facts = {"group": "colour", "severity": 3, "suites": [SUITE]}
        shift = {"steps": 1, "rate": 15, "unit": "time", "boundary": "skip", "reach": 5}
        place = {"location": "middle", "duration_s": 1.0}
        runs = [
            run(model, None, right, None),
            run(model, "pgd", right, 1),
            run(model, "square", right, 3),
            run(
                model, "natural-shift", right, kept,
                components=part("natural-shift", ["natural"], shift),
            ),
            run(
                model, "fog", right, kept - 1,
                components=part("fog", ["corruption"], {"severity": 3},
                                corruption={"type": "fog", **facts}),
            ),
            run(
                model, "drop", right, kept,
                components=part("drop", ["tampering", "mvt5"], place),
            ),
        ]  # fmt: skip
        if hue:
            runs.append(
                run(
                    model, "hue", right, kept,
                    components=part("hue", ["corruption"], {"severity": 3},
                                    corruption={"type": "hue", **facts}),
                )
            )  # fmt: skip
        return runs

    return make


def report(*runs: Any, reference: str = "") -> RobustnessReport:
    found = robustness_report(paired_rows(runs), reference)
    assert found is not None
    return found


def row(table: Table, name: str) -> dict[str, Any]:
    (line,) = [line for line in table.lines if line.name == name]
    return {head.text: shown for head, shown in zip(table.heads, line.cells, strict=True)}


def test_one_row_a_model(world: Any) -> None:
    (table,) = report(*world(), *world("n", right=8, kept=8)).side_by_side
    assert table.title == "Side by side on motion"
    assert [line.name for line in table.lines] == ["m", "n"]
    cells = row(table, "m")
    assert {name: shown.cell.value for name, shown in cells.items()} == pytest.approx(
        {
            "Clean %": 6 / 8,
            "Attacked: L∞ 8/255 %": 1 / 8,
            "Natural: Anchor %": 6 / 8,
            "Natural: NR %": 4 / 6,
            "Natural: ±1 worst %": 4 / 8,
            "two: mPC %": (3 / 8 + 4 / 8) / 2,
            "two: rPC %": (3 / 8 + 4 / 8) / 2 / (6 / 8),
            "Tampering, mvt5, 1 s at middle: Mean %": 4 / 8,
            "Tampering, mvt5, 1 s at middle: Worst %": 4 / 8,
        }
    )
    assert cells["Attacked: L∞ 8/255 %"].word == "pgd, of 2"
    assert cells["Tampering, mvt5, 1 s at middle: Worst %"].word == "drop"
    assert row(table, "n")["Natural: NR %"].cell.value == 1


def test_what_a_number_rests_on_is_said(world: Any) -> None:
    (table,) = report(*world()).side_by_side
    notes = " ".join(table.notes)
    assert "Tampering, mvt5, only 1 of 5 types, 8 videos." in notes
    assert "two, 8 videos." in notes
    assert "did not all meet the same attacks" not in notes
    (table,) = report(*world(), *[r for r in world("n") if r.attack != "square"]).side_by_side
    assert "did not all meet the same attacks" in " ".join(table.notes)


def test_a_missing_cell_has_a_reason(world: Any) -> None:
    (table,) = report(*world(), *world("n", hue=False)).side_by_side
    shown = row(table, "n")["two: mPC %"]
    assert shown.cell.value is None
    assert shown.cell.reason == "incomplete: hue has no severity 3"
    assert "No value, incomplete: hue has no severity 3: mPC of n, rPC of n." in table.notes


def test_runs_on_other_videos_are_in_no_column_of_these(world: Any, make_run: Any) -> None:
    other = make_run(model="m", attack="apgd", records=world()[1].records)
    other.manifest["experiment"]["dataset"] = {"name": "motion", "frames": 99}
    (table,) = report(*world(), other).side_by_side
    assert row(table, "m")["Attacked: L∞ 8/255 %"].word == "pgd, of 2"
    assert any("other videos" in note for note in table.notes)


def test_a_defended_system_is_a_row_of_its_own(make_run: Any, records: Any) -> None:
    found = [
        records.video(f"v{i}", right=True, held=True, defended=(True, i < 5)) for i in range(8)
    ]
    facts = {"type": "fog", "group": "weather", "severity": 3, "suites": []}
    run = make_run(
        model="m", attack="fog", defense="median", records=found,
        components=part("fog", ["corruption"], {"severity": 3}, corruption=facts),
    )  # fmt: skip
    (table,) = report(run).side_by_side
    assert row(table, "m + median")["Corruptions: mPC %"].cell.value == 5 / 8


def test_maps_have_a_number_in_every_coloured_cell(world: Any) -> None:
    maps = [table for table in report(*world()).tables if table.is_map]
    assert len(maps) == 5
    shown = [cell for table in maps for line in table.lines for cell in line.cells]
    assert all(0 <= float(cell.shade) <= 1 for cell in shown)
    (table,) = [t for t in maps if t.title.startswith("m: accuracy")]
    assert [head.title for head in table.heads] == ["0", "3"]
    fog = table.lines[0]
    assert (fog.name, fog.context) == ("fog", "colour")
    assert [cell.cell.value for cell in fog.cells] == [6 / 8, 3 / 8]
    assert fog.cells[1].heat == pytest.approx(5 / 8)


def test_errors_only_beside_a_reference(world: Any) -> None:
    runs = [*world(), *world("n", kept=5)]

    def heads(reference: str) -> set[str]:
        return {h.title for t in report(*runs, reference=reference).tables for h in t.heads}

    assert {"mCE %", "Relative mCE %", "FR %"} <= heads("n")
    assert not {"mCE %", "Relative mCE %", "FR %"} & heads("")
    with pytest.raises(UsageError, match="there are: m, n"):
        report(*runs, reference="x")


def test_nothing_to_show(make_run: Any) -> None:
    assert robustness_report(paired_rows([make_run()])) is None
    with pytest.raises(UsageError, match="no natural shift"):
        robustness_report(paired_rows([make_run()]), "m")


def test_without_numpy_there_is_a_note(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robustness, "find_spec", lambda _: None)
    found = report(*world())
    assert found.note == robustness.NO_NUMPY
    assert found.tables == []
    assert robustness.NO_NUMPY in MarkdownReporter().text(world())
    assert "pip install" in HtmlReporter().text(world())
    assert LatexReporter().text(world()).count(r"\begin{table}") == 1


def test_formats_say_the_same(world: Any) -> None:
    runs = world()
    number = "43.8"  # mPC of two types: (37.5 + 50) / 2
    markdown, latex, page = (
        r().text(runs) for r in (MarkdownReporter, LatexReporter, HtmlReporter)
    )
    assert f"{number} [" in next(li for li in markdown.splitlines() if "pgd, of 2" in li)
    assert "## Corruptions, suite two on motion" in markdown
    assert number in latex
    assert r"\multicolumn{2}{c}{two}" in latex
    assert f">{number}<" in re.sub(r"\s", "", page)
    assert 'href="#robustness"' in page


def test_terminal_turns_what_is_too_wide(world: Any) -> None:
    from rich.console import Console

    found = report(*world())
    for width in (40, 80, 240):
        stream = io.StringIO()
        robustness_text.draw(found, Console(file=stream, width=width, color_system=None))
        text = stream.getvalue()
        assert "43.8" in text
        assert "Side by side on motion" in text
        assert max(map(len, text.splitlines())) <= width


def test_what_is_no_attack_is_in_no_table_of_attacks(world: Any) -> None:
    text = MarkdownReporter().text([*world(), *world("n")])
    table = text[text.index("## Models against attacks") :]
    assert "pgd" in table
    assert "fog" not in table
    assert "natural-shift" not in table


def test_hostile_names_are_text(world: Any) -> None:
    evil = "<script>alert(1)</script>"
    page = HtmlReporter().text(world(evil))
    section = page[page.index('<section id="robustness"') :]
    assert evil not in section
    assert "&lt;script&gt;" in section
    assert evil not in MarkdownReporter().text(world("a|" + evil))


def run_command(*arguments: str) -> str:
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_json_has_the_numbers(world: Any, tmp_path: Path, make_run: Any) -> None:
    world()
    found = json.loads(run_command(str(tmp_path / "results"), "--json", "--reference", "m"))
    assert found["robustness"]["reference"] == "m"
    sections = {(s["family"], s["suite"]): s for s in found["robustness"]["sections"]}
    overall = sections["corruption", "two"]["systems"]["m"]["overall"]
    assert overall["mpc"]["value"] == pytest.approx(0.4375)
    assert overall["mce"]["value"] == pytest.approx(1)
    assert sections["natural", ""]["systems"]["m"]["steps"]["1"]["retention"]["value"] == 4 / 6
    assert "NaN" not in json.dumps(found)


def test_command_line_reference(world: Any, tmp_path: Path) -> None:
    world()
    results = str(tmp_path / "results")
    assert "mCE %" in run_command(results, "--format", "md", "--reference", "m")
    for arguments, message in (
        (("--reference", "x"), "there are: m"),
        (("--format", "csv", "--reference", "m"), "'csv' has no place for it"),
    ):
        with pytest.raises(UsageError, match=message):
            CliRunner().invoke(command, [results, *arguments], catch_exceptions=False)
